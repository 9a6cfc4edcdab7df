//! One request on its way through the stages: who asks, what webhooks said, what is told of it; and how admission is
//! asked about it.

use crate::account::{Account, Stage, Verdict};
use crate::admission::attributes::{Attributes, Operation, User, group_version};
use crate::admission::coverage::Strictness;
use crate::admission::handler::Handlers;
use crate::admission::{self, WebhookAnswer, WebhookCall};
use crate::request::FieldValidation;
use crate::response::{Status, resource};
use crate::store::Key;
use crate::update::decoded;
use crate::view::{at, text};
use crate::{Api, seal};
use serde_json::Value;
use std::collections::BTreeMap;

/// A request being handled.
pub(crate) struct Call<'a> {
    pub user: &'a User,
    pub answers: &'a [WebhookAnswer],
    pub account: &'a mut Account,
    /// What becomes of fields that nobody knows.
    pub field_validation: FieldValidation,
    /// Nothing will be stored.
    pub dry_run: bool,
    /// The first webhook that is meant and hasn't answered.
    pub due: Option<WebhookCall>,
    /// What the client is warned of.
    pub warnings: Vec<String>,
    /// What handlers add to the audit record.
    pub audit_annotations: BTreeMap<String, String>,
}

impl Call<'_> {
    /// Somebody is to be asked; the first one is told.
    pub fn is_due(&mut self, asked: Option<WebhookCall>) {
        if self.due.is_none() {
            self.due = asked;
        }
    }

    /// What an answer says besides its verdict. Annotations are the webhook's own.
    pub fn heard(&mut self, answer: &WebhookAnswer) {
        self.warnings.extend(answer.warnings.iter().cloned());
        let notes = answer.audit_annotations.iter();
        let named = notes.map(|(key, note)| (format!("{}/{key}", answer.webhook), note.clone()));
        self.audit_annotations.extend(named);
    }

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
        let request = self.attributes(call, key, old, new);
        admission::cover(&request, &self.handlers, strictness, call.account)
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
        let request = self.attributes(call, key, old, &new);
        let mutated = admission::mutate(api, &request, &self.handlers, call)?;
        // A patch may have made anything of it. Fields that nobody knows are dropped, as upstream.
        let mutated = decoded(mutated, &key.kind, FieldValidation::Ignore, &mut Vec::new())
            .map_err(|wrong| Status::internal(&format!("after mutating admission: {}", wrong.message)))?;
        match mutated.is_object() && text(at(&mutated, "metadata"), "name") == &*key.name {
            true => Ok(mutated),
            false => Err(Status::internal("mutating admission made another object of it")),
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
        let request = self.attributes(call, key, old, new);
        admission::validate(api, &request, &self.handlers, call)
    }

    fn attributes<'a>(
        &'a self,
        call: &Call<'a>,
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
            user: call.user,
            dry_run: call.dry_run,
            namespace_object: admission::lookup(self.namespace.as_ref()),
        }
    }
}

/// Manifests of handlers are no handler's business: one that is wrong could never be mended.
fn is_handler(kind: &str) -> bool {
    admission::HANDLER_KINDS.contains(&kind)
}
