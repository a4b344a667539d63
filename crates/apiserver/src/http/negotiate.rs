//! Which form of an answer a client wants.

use crate::{ApiError, ApiResult};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The objects themselves.
    Objects,
    /// A `Table`.
    Table,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
    /// `APIGroupDiscoveryList` of this version (`v2` or `v2beta1`).
    Discovery(&'static str),
}

/// Picks the first media type in an `Accept` header that can be served as JSON.
pub(super) fn form(accept: &str) -> ApiResult<Form> {
    if accept.trim().is_empty() {
        return Ok(Form::Objects);
    }
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(media, "application/json" | "*/*" | "application/*" | "application/yaml") {
            continue;
        }
        let parameters: Vec<(&str, &str)> = parts.filter_map(|p| p.split_once('=')).collect();
        let get = |key: &str| parameters.iter().find(|(k, _)| *k == key).map_or("", |(_, v)| *v);
        let found = match (get("as"), get("g"), get("v")) {
            ("", ..) => Some(Form::Objects),
            ("Table", "meta.k8s.io", "v1") => Some(Form::Table),
            ("PartialObjectMetadata", "meta.k8s.io", "v1") => Some(Form::Metadata),
            ("PartialObjectMetadataList", "meta.k8s.io", "v1") => Some(Form::MetadataList),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Form::Discovery("v2")),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => Some(Form::Discovery("v2beta1")),
            _ => None,
        };
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(ApiError::not_acceptable(&["application/json"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_form_that_can_be_served() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(kubectl).unwrap(), Form::Table);
        assert_eq!(form("application/vnd.kubernetes.protobuf,application/json").unwrap(), Form::Objects);
        assert_eq!(
            form("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json")
                .unwrap(),
            Form::Discovery("v2")
        );
        assert_eq!(form("application/vnd.kubernetes.protobuf").unwrap_err().code(), 406);
    }
}
