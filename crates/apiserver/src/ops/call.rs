//! What every verb is given: who asks, what for, and how it is to be done.

use std::sync::Arc;

use tiphys_value::{GroupKind, ObjectExt, Value};

use super::decode::FieldValidation;
use crate::{auth::User, meta, registry::Resource};

/// Who asks, and how the write is to be done.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub user: User,
    pub manager: String,
    pub dry_run: bool,
    /// Whether server-side apply has already recorded the owners of fields.
    pub applied: bool,
    pub validation: FieldValidation,
    /// The patch that is being applied, as error messages show it.
    pub patch_text: Option<String>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

impl Call {
    pub(crate) fn new(user: User, manager: &str) -> Self {
        Self {
            user,
            manager: manager.to_owned(),
            dry_run: false,
            applied: false,
            validation: FieldValidation::Ignore,
            patch_text: None,
            warnings: Vec::new(),
        }
    }
}

/// What a request is about. Namespace, name and subresource may be empty.
#[derive(Clone, Debug)]
pub(crate) struct At {
    pub resource: Arc<Resource>,
    pub namespace: String,
    pub name: String,
    pub subresource: Option<String>,
}

impl At {
    pub(crate) fn key(&self) -> String {
        crate::store::key(&self.namespace, &self.name)
    }

    pub(crate) fn not_found(&self) -> crate::ApiError {
        crate::ApiError::not_found(self.resource.object_named(&self.name))
    }

    pub(crate) fn is_status(&self) -> bool {
        self.subresource.as_deref() == Some("status")
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.resource.id.group() == group && self.resource.id.resource() == plural
    }

    /// Whether nothing holds a terminating object any more.
    pub(crate) fn may_go(&self, object: &Value) -> bool {
        let no_grace = object.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0;
        no_grace && !(self.resource.kind.is_held)(object) && meta::finalizers(object).is_empty()
    }

    /// Whether the request is about events, of whichever group.
    pub(crate) fn is_event(&self) -> bool {
        self.is("", "events") || self.is("events.k8s.io", "events")
    }

    /// The kind that messages name: that of the form in which objects are kept.
    pub(crate) fn error_kind(&self) -> GroupKind {
        match self.is_event() {
            true => GroupKind::new("", "Event"),
            false => self.resource.group_kind(),
        }
    }
}
