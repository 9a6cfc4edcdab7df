//! Expressions of policies and match conditions, with the variables that Kubernetes gives them.
//!
//! Evaluated by the `cel` crate with its string, list and math extensions and what is in `library`. Others of Kubernetes' own
//! (URLs, IPs, `authorizer`) aren't there: an expression that calls them fails, and the handler's failurePolicy decides.
//! Nothing is type-checked beforehand, so that a slip shows when it is evaluated.

use super::attributes::{Attributes, NamespaceLookup};
use super::library;
use super::values::{Field, Fields, to_cel};
use crate::view::{list, name, text};
use cel::common::types::{CelBool, CelString};
use cel::common::value::Val;
use cel::{Context, Env, ExecutionError, Program, Value as CelValue};
use serde_json::{Value, json};
use std::sync::Arc;

/// What expressions about one request see.
pub(super) struct Scope {
    context: Context<'static, 'static>,
    env: Arc<Env>,
}

impl Scope {
    /// `object`, `oldObject`, `request`, `namespaceObject` and `params`.
    pub fn new(request: &Attributes<'_>, params: &Value) -> Scope {
        let mut env = Env::stdlib();
        // Each registers names that the standard library doesn't have, once: it can't be refused.
        let added = env
            .add_extension(cel::extensions::strings)
            .and_then(|()| env.add_extension(cel::extensions::lists))
            .and_then(|()| env.add_extension(cel::extensions::math))
            .and_then(|()| env.add_extension(library::extension));
        debug_assert!(added.is_ok(), "each declares names of its own: {added:?}");
        let env = Arc::new(env);
        let mut context = Context::with_env(env.clone());
        let namespace = match &request.namespace_object {
            NamespaceLookup::Found(namespace) => (*namespace).clone(),
            NamespaceLookup::ClusterScoped | NamespaceLookup::Failed(_) => Value::Null,
        };
        for (variable, value) in [
            ("object", request.object),
            ("oldObject", request.old_object),
            ("request", &request.request()),
            ("namespaceObject", &namespace),
            ("params", params),
            ("variables", &json!({})),
        ] {
            context.add_variable_as_val(variable, to_cel(value));
        }
        Scope { context, env }
    }

    /// `variables`: each sees those before it, and an error is told to whoever asks for it.
    pub fn declare(&mut self, variables: &[Value]) {
        let mut known: Vec<(String, Field)> = Vec::new();
        for variable in variables {
            let value = self.evaluate(text(variable, "expression")).map_err(|wrong| {
                ExecutionError::function_error(&format!("variables.{}", name(variable)), wrong)
            });
            known.push((name(variable).to_owned(), value));
            let fields = Fields::new(known.iter().map(|(name, value)| (name.clone(), value.clone())));
            self.context.add_variable_as_val("variables", Box::new(fields));
        }
    }

    /// The value of an expression.
    fn evaluate(&self, expression: &str) -> Result<Box<dyn Val>, String> {
        let program: Program = self.env.compile(expression).map_err(|wrong| wrong.to_string())?;
        let value = CelValue::resolve_val(program.expression(), &self.context);
        value.map(|value| value.into_owned()).map_err(|wrong| wrong.to_string())
    }

    /// An expression that is true or false.
    pub fn holds(&self, expression: &str) -> Result<bool, String> {
        let value = self.evaluate(expression)?;
        match value.downcast_ref::<CelBool>() {
            Some(flag) => Ok(*flag.inner()),
            None => Err(format!("the expression gives a {}, not a bool", value.get_type().name())),
        }
    }

    /// An expression that is a text.
    pub fn text(&self, expression: &str) -> Result<String, String> {
        let value = self.evaluate(expression)?;
        match value.downcast_ref::<CelString<'_>>() {
            Some(text) => Ok(text.inner().to_owned()),
            None => Err(format!("the expression gives a {}, not a string", value.get_type().name())),
        }
    }

    /// All `matchConditions` hold. One that is false decides, whatever others say; else an error does.
    pub fn conditions_hold(&self, of: &Value) -> Result<bool, String> {
        let mut failed = None;
        for condition in list(of, "matchConditions") {
            match self.holds(text(condition, "expression")) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(wrong) => {
                    let told = format!("matchCondition {:?}: {wrong}", name(condition));
                    failed.get_or_insert(told);
                }
            }
        }
        failed.map_or(Ok(true), Err)
    }
}
