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

/// What a client takes first of what can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub form: Form,
    /// In YAML instead of JSON.
    pub is_yaml: bool,
    /// With the name of the version that the form had before.
    pub is_beta: bool,
}

/// Picks the first media type in an `Accept` header that can be served as JSON.
pub(super) fn form(accept: &str) -> ApiResult<Form> {
    choice(accept).map(|choice| choice.form).map_err(|_| ApiError::not_acceptable(&["application/json"]))
}

/// Picks the first media type in an `Accept` header that can be served. The error says whether a medium was
/// known, and only the form that was asked for not.
pub(super) fn choice(accept: &str) -> Result<Choice, bool> {
    if accept.trim().is_empty() {
        return Ok(Choice { form: Form::Objects, is_yaml: false, is_beta: false });
    }
    let mut is_known = false;
    let weight = |range: &&str| {
        let given = range.split(';').find_map(|part| part.trim().strip_prefix("q="));
        (given.and_then(|given| given.parse::<f64>().ok()).unwrap_or(1.0) * -1000.0) as i64
    };
    let mut ranges: Vec<&str> = accept.split(',').collect();
    ranges.sort_by_key(weight);
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(media, "application/json" | "*/*" | "application/*" | "application/yaml") {
            continue;
        }
        is_known = true;
        let parameters: Vec<(&str, &str)> = parts.filter_map(|p| p.split_once('=')).collect();
        let get = |key: &str| parameters.iter().find(|(k, _)| *k == key).map_or("", |(_, v)| *v);
        let found = match (get("as"), get("g"), get("v")) {
            ("", ..) => Some(Form::Objects),
            ("Table", "meta.k8s.io", "v1" | "v1beta1") => Some(Form::Table),
            ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => Some(Form::Metadata),
            ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => Some(Form::MetadataList),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Form::Discovery("v2")),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => Some(Form::Discovery("v2beta1")),
            _ => None,
        };
        if let Some(form) = found {
            let is_beta = get("g") == "meta.k8s.io" && get("v") == "v1beta1";
            return Ok(Choice { form, is_yaml: media == "application/yaml", is_beta });
        }
    }
    Err(is_known)
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
        assert!(!choice("text/html").unwrap_err());
        assert!(choice("application/json;as=Foo;g=meta.k8s.io;v=v1").unwrap_err());
        let old = choice("application/yaml;as=Table;g=meta.k8s.io;v=v1beta1").unwrap();
        assert!(old.is_yaml && old.is_beta && old.form == Form::Table);
    }
}
