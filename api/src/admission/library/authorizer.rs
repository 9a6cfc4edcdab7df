//! `authorizer.group("").resource("pods").namespace("default").check("create").allowed()`: what the roles say of whoever asks.
//! `authorizer.requestResource` is what the request itself is about.

use super::opaque;
use crate::admission::attributes::{Attributes, User};
use crate::authorize::rbac::{Ask, Rbac, Ruling};
use cel::common::traits::Indexer;
use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use std::any::Any;
use std::sync::Arc;

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_member_overload!(env, fn path: (Authorizer, CelString) -> Result<PathCheck>)?;
    cel::add_member_overload!(env, fn group: (Authorizer, CelString) -> GroupCheck)?;
    cel::add_member_overload!(env, fn service_account: (Authorizer, CelString, CelString) -> Authorizer)?;
    cel::add_member_overload!(env, fn resource: (GroupCheck, CelString) -> ResourceCheck)?;
    cel::add_member_overload!(env, fn subresource: (ResourceCheck, CelString) -> ResourceCheck)?;
    cel::add_member_overload!(env, fn namespace: (ResourceCheck, CelString) -> ResourceCheck)?;
    cel::add_member_overload!(env, fn name: (ResourceCheck, CelString) -> ResourceCheck)?;
    cel::add_member_overload!(env, fn narrowed: (ResourceCheck, CelString) -> ResourceCheck, name = "fieldSelector")?;
    cel::add_member_overload!(env, fn narrowed: (ResourceCheck, CelString) -> ResourceCheck, name = "labelSelector")?;
    cel::add_member_overload!(env, fn check: (ResourceCheck, CelString) -> Decision)?;
    cel::add_member_overload!(env, fn check_path: (PathCheck, CelString) -> Decision, name = "check")?;
    cel::add_member_overload!(env, fn allowed: (Decision) -> CelBool)?;
    cel::add_member_overload!(env, fn reason: (Decision) -> CelString)?;
    cel::add_member_overload!(env, fn errored: (Decision) -> CelBool)?;
    cel::add_member_overload!(env, fn error: (Decision) -> CelString)
}

/// Who asks, and the roles.
#[derive(Clone, Debug)]
pub(in crate::admission) struct Authorizer {
    rbac: Arc<Rbac>,
    user: User,
    request: ResourceCheck,
}

#[derive(Clone, Debug)]
struct GroupCheck {
    rbac: Arc<Rbac>,
    user: User,
    group: String,
}

#[derive(Clone, Debug)]
struct ResourceCheck {
    rbac: Arc<Rbac>,
    user: User,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

/// A path that is no object's.
#[derive(Clone, Debug)]
struct PathCheck {
    rbac: Arc<Rbac>,
    user: User,
    path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Decision {
    allowed: bool,
    reason: String,
}

static AUTHORIZER: Type = Type::new_unspecified_type("kubernetes.authorization.Authorizer");
static GROUP: Type = Type::new_unspecified_type("kubernetes.authorization.GroupCheck");
static RESOURCE: Type = Type::new_unspecified_type("kubernetes.authorization.ResourceCheck");
static PATH: Type = Type::new_unspecified_type("kubernetes.authorization.PathCheck");
static DECISION: Type = Type::new_unspecified_type("kubernetes.authorization.Decision");

/// Questions aren't compared: nobody asks whether two are the same.
macro_rules! never_equal {
    ($($name:ident),*) => { $(impl PartialEq for $name {
        fn eq(&self, _: &$name) -> bool {
            false
        }
    })* };
}

never_equal!(GroupCheck, ResourceCheck, PathCheck);
opaque!(GroupCheck, GROUP);
opaque!(ResourceCheck, RESOURCE);
opaque!(PathCheck, PATH);
opaque!(Decision, DECISION);

impl Authorizer {
    /// For whoever asks this.
    pub fn new(rbac: Rbac, request: &Attributes<'_>) -> Authorizer {
        let (rbac, user) = (Arc::new(rbac), request.user.clone());
        let request = ResourceCheck {
            rbac: rbac.clone(),
            user: user.clone(),
            group: request.group.to_owned(),
            resource: request.resource.to_owned(),
            subresource: request.subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
        };
        Authorizer { rbac, user, request }
    }
}

impl Val for Authorizer {
    fn get_type(&self) -> &Type {
        &AUTHORIZER
    }

    fn cel_type() -> &'static Type {
        &AUTHORIZER
    }

    fn equals(&self, _: &dyn Val) -> bool {
        false
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Authorizer {}

impl Indexer for Authorizer {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match key.downcast_ref::<CelString<'_>>().map(CelString::inner) {
            Some("requestResource") => Ok(CowVal::Borrowed(&self.request)),
            Some(other) => Err(ExecutionError::no_such_key(other)),
            None => Err(ExecutionError::no_such_key("a key that is no string")),
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Indexer::get(&*self, key).map(|value| value.into_owned())
    }
}

fn path(of: &Authorizer, path: &CelString<'_>) -> Result<PathCheck, ExecutionError> {
    match path.inner() {
        "" => Err(ExecutionError::function_error("path", "path must not be empty")),
        path => Ok(PathCheck { rbac: of.rbac.clone(), user: of.user.clone(), path: path.to_owned() }),
    }
}

fn group(of: &Authorizer, group: &CelString<'_>) -> GroupCheck {
    GroupCheck { rbac: of.rbac.clone(), user: of.user.clone(), group: group.inner().to_owned() }
}

/// The same questions for an account of that name.
fn service_account(of: &Authorizer, namespace: &CelString<'_>, name: &CelString<'_>) -> Authorizer {
    let user = User::named(&format!("system:serviceaccount:{}:{}", namespace.inner(), name.inner()));
    Authorizer { user: user.clone(), request: ResourceCheck { user, ..of.request.clone() }, ..of.clone() }
}

fn resource(of: &GroupCheck, resource: &CelString<'_>) -> ResourceCheck {
    ResourceCheck {
        rbac: of.rbac.clone(),
        user: of.user.clone(),
        group: of.group.clone(),
        resource: resource.inner().to_owned(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
    }
}

fn subresource(of: &ResourceCheck, subresource: &CelString<'_>) -> ResourceCheck {
    ResourceCheck { subresource: subresource.inner().to_owned(), ..of.clone() }
}

fn namespace(of: &ResourceCheck, namespace: &CelString<'_>) -> ResourceCheck {
    ResourceCheck { namespace: namespace.inner().to_owned(), ..of.clone() }
}

fn name(of: &ResourceCheck, name: &CelString<'_>) -> ResourceCheck {
    ResourceCheck { name: name.inner().to_owned(), ..of.clone() }
}

/// Roles know no selectors: what is allowed without one is allowed with one.
fn narrowed(of: &ResourceCheck, _selector: &CelString<'_>) -> ResourceCheck {
    of.clone()
}

fn check(of: &ResourceCheck, verb: &CelString<'_>) -> Decision {
    let ask = Ask {
        verb: verb.inner(),
        group: &of.group,
        resource: &of.resource,
        subresource: &of.subresource,
        namespace: &of.namespace,
        name: &of.name,
    };
    match of.rbac.decide(&of.user, &ask) {
        Ruling::Allowed { by } => Decision { allowed: true, reason: by },
        // Kubernetes' roles give no reason for what they don't allow.
        Ruling::Denied { .. } => Decision { allowed: false, reason: String::new() },
    }
}

fn check_path(of: &PathCheck, verb: &CelString<'_>) -> Decision {
    let allowed = of.rbac.allows_path(&of.user, verb.inner(), &of.path);
    Decision { allowed, reason: String::new() }
}

fn allowed(decision: &Decision) -> CelBool {
    CelBool::from(decision.allowed)
}

fn reason(decision: &Decision) -> CelString<'static> {
    CelString::from(decision.reason.clone())
}

/// Reading roles never fails.
fn errored(_: &Decision) -> CelBool {
    CelBool::from(false)
}

fn error(_: &Decision) -> CelString<'static> {
    CelString::from(String::new())
}
