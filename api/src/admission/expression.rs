//! Expressions of policies and match conditions, with the variables that Kubernetes gives them.
//!
//! Evaluated by the `cel` crate with its string, list and math extensions and Kubernetes' libraries (`library`). Nothing is
//! type-checked beforehand, so that a slip shows when it is evaluated; what an expression calls and nobody has is told as such.

use super::attributes::{Attributes, NamespaceLookup};
use super::cluster::Cluster;
use super::constructed;
use super::library::{self, Authorizer};
use super::values::{Field, Fields, to_cel};
use crate::authorize::rbac::Rbac;
use crate::view::{list, name, text};
use cel::common::types::{CelBool, CelString};
use cel::common::value::Val;
use cel::{Context, DeclarationError, Env, ExecutionError, Program, Value as CelValue};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It can't be read.
    Syntax(String),
    /// It needs what nodefold's CEL doesn't have.
    Lacking(String),
    /// It failed.
    Failed(String),
    /// Its value isn't what is asked for here.
    OtherType(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Syntax(what) => write!(f, "compilation failed: {what}"),
            Wrong::Lacking(what) => write!(f, "the expression needs what this CEL doesn't have: {what}"),
            Wrong::Failed(what) | Wrong::OtherType(what) => f.write_str(what),
        }
    }
}

impl Wrong {
    fn of(error: &ExecutionError, expression: &str) -> Wrong {
        if let ExecutionError::UndeclaredReference(what) = error {
            return Wrong::Lacking(format!("{what} (in {expression:?})"));
        }
        if let ExecutionError::UnexpectedType { got, want } = error
            && want == "known struct"
        {
            return Wrong::Lacking(format!("objects of type {got}"));
        }
        Wrong::Failed(error.to_string())
    }
}

/// The environment of all expressions that make no objects.
static COMMON: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // Each registers names that the standard library doesn't have, once: it can't be refused.
    let added = extend(&mut env);
    debug_assert!(added.is_ok(), "each declares names of its own: {added:?}");
    Arc::new(env)
});

fn extend(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(cel::extensions::strings)?;
    env.add_extension(cel::extensions::lists)?;
    env.add_extension(cel::extensions::math)?;
    env.add_extension(library::extension)
}

/// Every text in a manifest.
fn texts<'v>(value: &'v Value, out: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What expressions about one request see.
pub(super) struct Scope {
    context: Context<'static, 'static>,
    env: Arc<Env>,
}

impl Scope {
    /// `object`, `oldObject`, `request`, `namespaceObject`, `params`, and `authorizer` if an expression of the manifest names it. The
    /// types of objects that its expressions make are declared.
    pub fn new(request: &Attributes<'_>, params: &Value, cluster: Cluster<'_>, manifest: &Value) -> Scope {
        let mut said = Vec::new();
        texts(manifest, &mut said);
        let env = match said.iter().any(|text| text.contains("Object") || text.contains("JSONPatch")) {
            false => COMMON.clone(),
            true => {
                let mut env = Env::stdlib();
                let made = said.join("\n");
                let added = extend(&mut env).map_err(|wrong| wrong.to_string());
                let added = added.and_then(|()| constructed::declare(&mut env, &made));
                debug_assert!(added.is_ok(), "each declares names of its own: {added:?}");
                Arc::new(env)
            }
        };
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
        if said.iter().any(|text| text.contains("authorizer")) {
            let kinds = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
            let rbac = Rbac::read(kinds.iter().flat_map(|kind| cluster.all(kind)).map(|object| &**object));
            context.add_variable_as_val("authorizer", Box::new(Authorizer::new(rbac, request)));
        }
        Scope { context, env }
    }

    /// Whether the `matchConditions` of a webhook hold; without any they do, and nothing is made ready.
    pub fn conditions_hold_of(
        request: &Attributes<'_>,
        cluster: Cluster<'_>,
        webhook: &Value,
    ) -> Result<bool, String> {
        if list(webhook, "matchConditions").is_empty() {
            return Ok(true);
        }
        Scope::new(request, &Value::Null, cluster, webhook).conditions_hold(webhook)
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
    fn evaluate(&self, expression: &str) -> Result<Box<dyn Val>, Wrong> {
        let program: Program =
            self.env.compile(expression).map_err(|wrong| Wrong::Syntax(wrong.to_string()))?;
        let value = CelValue::resolve_val(program.expression(), &self.context);
        value.map(|value| value.into_owned()).map_err(|error| Wrong::of(&error, expression.trim()))
    }

    /// An expression that is true or false.
    pub fn holds(&self, expression: &str) -> Result<bool, String> {
        let value = self.evaluate(expression).map_err(|wrong| wrong.to_string())?;
        match value.downcast_ref::<CelBool>() {
            Some(flag) => Ok(*flag.inner()),
            None => Err(format!("the expression gives a {}, not a bool", value.get_type().name())),
        }
    }

    /// An expression that is a text.
    pub fn text(&self, expression: &str) -> Result<String, String> {
        let value = self.evaluate(expression).map_err(|wrong| wrong.to_string())?;
        match value.downcast_ref::<CelString<'_>>() {
            Some(text) => Ok(text.inner().to_owned()),
            None => Err(format!("the expression gives a {}, not a string", value.get_type().name())),
        }
    }

    /// An expression that makes an `Object{...}`.
    pub fn configuration(&self, expression: &str) -> Result<Map<String, Value>, Wrong> {
        let value = self.evaluate(expression)?;
        constructed::configuration(value.as_ref()).map_err(Wrong::OtherType)
    }

    /// An expression that makes a list of `JSONPatch{...}`.
    pub fn json_patch(&self, expression: &str) -> Result<Vec<Value>, Wrong> {
        let value = self.evaluate(expression)?;
        constructed::json_patch(value.as_ref()).map_err(Wrong::OtherType)
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
