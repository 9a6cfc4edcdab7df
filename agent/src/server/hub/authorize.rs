//! Whether a request may be made: roles, before anything is looked at (api-side §0, stage 1).

use super::super::ask::{Target, What};
use super::super::failure::Failure;
use super::{Hub, audit};
use nodefold_api::admission::attributes::User;
pub use nodefold_api::authorize::rbac::MASTERS;
use nodefold_api::authorize::rbac::{Ask, Ruling};

const AUTHENTICATION: &str = "authentication.k8s.io";
/// Who is in this group may read metrics.
const MONITORING: &str = "system:monitoring";

impl Hub {
    /// By what it is allowed, or why it isn't.
    pub(super) fn authorized(
        &self,
        user: &User,
        impersonator: Option<&User>,
        target: &Target,
        what: &What,
    ) -> Result<String, Failure> {
        if let Some(real) = impersonator {
            self.may_impersonate(real, user)?;
        }
        match target {
            Target::Path(path) => path_allowed(user, audit::verb(what), path),
            Target::Objects { resource, part, namespace, name } => {
                let ask = Ask {
                    verb: audit::verb(what),
                    group: resource.group,
                    resource: resource.plural,
                    subresource: part.map_or("", |part| part.name),
                    namespace,
                    name,
                };
                // What one may do, one may ask.
                if matches!(resource.group, "authentication.k8s.io" | "authorization.k8s.io") {
                    return Ok("everybody may ask about themselves".to_owned());
                }
                self.decide(user, &ask)
            }
        }
    }

    /// What the roles say of one question.
    pub(super) fn decide(&self, user: &User, ask: &Ask<'_>) -> Result<String, Failure> {
        match self.rbac.decide(user, ask) {
            Ruling::Allowed { by } => Ok(by),
            Ruling::Denied { why } => Err(Failure::forbidden(ask.group, ask.resource, ask.name, &why)),
        }
    }

    fn may_impersonate(&self, real: &User, user: &User) -> Result<(), Failure> {
        let ask = |resource, name| Ask {
            verb: "impersonate",
            group: "",
            resource,
            subresource: "",
            namespace: "",
            name,
        };
        self.decide(real, &ask("users", &user.name))?;
        let implied = User::named(&user.name).groups;
        for group in user.groups.iter().filter(|group| !implied.contains(group)) {
            self.decide(real, &ask("groups", group))?;
        }
        if !user.uid.is_empty() {
            self.decide(real, &Ask { group: AUTHENTICATION, ..ask("uids", &user.uid) })?;
        }
        for (key, values) in &user.extra {
            for value in values {
                let place = Ask { group: AUTHENTICATION, subresource: key, ..ask("userextras", value) };
                self.decide(real, &place)?;
            }
        }
        Ok(())
    }
}

/// Discovery and schemas are for everybody who is known; metrics and what the node allocated are not.
pub fn path_allowed(user: &User, verb: &str, path: &str) -> Result<String, Failure> {
    let is_in = |wanted: &str| user.groups.iter().any(|group| &**group == wanted);
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    if is_in(MASTERS) {
        return Ok(format!("group {MASTERS}"));
    }
    match first {
        "api" | "apis" | "openapi" | "version" if verb == "get" => Ok("discovery".to_owned()),
        "metrics" if verb == "get" && is_in(MONITORING) => Ok(format!("group {MONITORING}")),
        _ => Err(Failure::forbidden_path(&user.name, verb, path)),
    }
}
