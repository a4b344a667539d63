//! The verbs of the API on objects, below HTTP.

mod builtin_status;
mod call;
mod commit;
mod conversion_webhook;
mod decode;
mod definitions;
mod delete;
mod event_life;
mod eviction;
mod managed_fields;
mod metadata;
mod patch;
mod patch_text;
mod protection;
mod read;
mod scale;
mod strategy;
mod subresource;
mod version_conversion;
mod warnings;
mod write;

pub(crate) use crate::meta::items;
pub(crate) use builtin_status::put_status;
pub(crate) use call::{At, Call};
pub(crate) use commit::after_commit;
pub(crate) use conversion_webhook::{in_version, seen_one as converted};
pub(crate) use decode::bind_to_url;
pub(crate) use decode::{FieldValidation, decode_input, expected_kind};
pub use delete::{DeleteOptions, Propagation};
pub(crate) use delete::{check_delete_options, delete, delete_collection};
pub use patch::Patch;
pub use read::ListOptions;
pub(crate) use read::{get, is_cached, list, parse_revision, read_revision};
pub(crate) use scale::{ScaleChange, get_scale, update_scale};
pub(crate) use subresource::{create_subresource, selector_text};
use tiphys_value::Value;
pub(crate) use version_conversion::{is_shown_as_stored, present};
pub(crate) use write::{create, create_decoded, patch, update, update_decoded};

use crate::registry::Resource;

/// Records who wrote the fields of a review, which is answered and never stored.
pub(crate) fn record_review(server: &crate::ApiServer, call: &Call, at: &At, object: &mut Value) {
    managed_fields::record(server, call, at, None, object);
}

/// Brings an object of another cluster into the form in which it is stored.
pub(crate) fn adopt(at: &At, object: &mut Value) -> crate::ApiResult<()> {
    decode::decode_by_type(&at.resource, &at.resource.gvk, object)?;
    version_conversion::to_storage(&at.resource, object);
    Ok(())
}

/// Brings an object that admission changed, in the version of `resource`, into the form in which it is
/// stored.
pub(crate) fn redecode(at: &At, resource: &Resource, object: &mut Value) -> crate::ApiResult<()> {
    decode::decode_by_type(resource, &resource.gvk, object)?;
    version_conversion::to_storage(&at.resource, object);
    Ok(())
}
