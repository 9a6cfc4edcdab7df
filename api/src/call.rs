//! One request on its way through the stages: who asks, what webhooks said, what is told of it; and how admission is
//! asked about it.

use crate::account::{Account, Stage, Verdict};
use crate::admission::attributes::{Attributes, Operation, User, group_version};
use crate::admission::coverage::Strictness;
use crate::admission::handler::Handlers;
use crate::admission::{self, WebhookAnswer, WebhookCall};
use crate::response::{Status, resource};
use crate::store::Key;
use crate::update::decodable;
use crate::view::{at, text};
use crate::{Api, seal};
use serde_json::Value;

/// A request being handled.
pub(crate) struct Call<'a> {
    pub user: &'a User,
    pub answers: &'a [WebhookAnswer],
    pub account: &'a mut Account,
    /// The first webhook that is meant and hasn't answered.
    pub due: Option<WebhookCall>,
}

impl Call<'_> {
    /// Tells that a stage is passed.
    pub fn passed(&mut self, stage: Stage, what: &str) {
        self.account.tell(stage, Verdict::Passed, || (String::new(), what.to_owned()));
    }
}

/// Admission of one change of one object: its handlers, read once (case 35 of api-side §2.2), and its namespace.
pub(crate) struct Admission {
    handlers: Handlers,
    namespace: Option<Value>,
    operation: Operation,
    subresource: &'static str,
    resource: String,
}

impl Admission {
    /// For a change of the object at this key.
    pub fn new(api: &Api, key: &Key, operation: Operation, subresource: &'static str) -> Admission {
        Admission {
            handlers: if is_handler(&key.kind) { Handlers::default() } else { admission::handlers(api) },
            namespace: admission::namespace(api, &key.namespace),
            operation,
            subresource,
            resource: resource(&key.kind),
        }
    }

    /// Stage 5.
    pub fn cover(
        &self,
        api: &Api,
        call: &mut Call<'_>,
        key: &Key,
        old: &Value,
        new: &Value,
    ) -> Result<(), Status> {
        let strictness = Strictness { audit_only_exempt: api.config.audit_only_policies_exempt };
        admission::cover(&self.attributes(call.user, key, old, new), &self.handlers, strictness, call.account)
    }

    /// Stage 6.
    pub fn mutate(
        &self,
        api: &Api,
        call: &mut Call<'_>,
        key: &Key,
        old: &Value,
        new: Value,
    ) -> Result<Value, Status> {
        if is_handler(&key.kind) || &*key.kind == "Secret" {
            // A journal holds secrets sealed (S13): a patch of one couldn't be folded again.
            return Ok(new);
        }
        let request = self.attributes(call.user, key, old, &new);
        let mutated = admission::mutate(api, &request, &self.handlers, call)?;
        // A patch may have made anything of it.
        let name = text(at(&mutated, "metadata"), "name");
        match decodable(&mutated, &key.kind) {
            Ok(()) if mutated.is_object() && name == &*key.name => Ok(mutated),
            Ok(()) => Err(Status::internal("mutating admission made another object of it")),
            Err(wrong) => Err(Status::internal(&format!("after mutating admission: {}", wrong.message))),
        }
    }

    /// Stage 10.
    pub fn validate(
        &self,
        api: &Api,
        call: &mut Call<'_>,
        key: &Key,
        old: &Value,
        new: &Value,
    ) -> Result<(), Status> {
        if is_handler(&key.kind) {
            return Ok(());
        }
        // Nor may a decision depend on a secret's bytes.
        let open = (&*key.kind == "Secret").then(|| (seal::open(old), seal::open(new)));
        let (old, new) = open.as_ref().map_or((old, new), |(old, new)| (old, new));
        let request = self.attributes(call.user, key, old, new);
        admission::validate(api, &request, &self.handlers, call)
    }

    fn attributes<'a>(
        &'a self,
        user: &'a User,
        key: &'a Key,
        old: &'a Value,
        new: &'a Value,
    ) -> Attributes<'a> {
        let (group, version) = group_version(if new.is_null() { old } else { new });
        Attributes {
            operation: self.operation,
            group,
            version,
            kind: &key.kind,
            resource: &self.resource,
            subresource: self.subresource,
            namespace: &key.namespace,
            name: &key.name,
            object: new,
            old_object: old,
            user,
            dry_run: false,
            namespace_object: admission::lookup(self.namespace.as_ref()),
        }
    }
}

/// Manifests of handlers are no handler's business: one that is wrong could never be mended.
fn is_handler(kind: &str) -> bool {
    admission::HANDLER_KINDS.contains(&kind)
}
