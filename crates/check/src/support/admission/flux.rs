//! What the definitions of Flux refuse beyond types (fluxcd `helmrelease_types.go`, `kustomization_types.go`,
//! `gitrepository_types.go`, `helmrepository_types.go`).

use tiphys_value::{ObjectExt, Value};

use super::refused_fields::Refusals;
use crate::support::{field_paths::keys, pods::text};

/// `is_whole` says that something renders the object as it is.
pub(super) fn check(kind: &str, spec: &Value, is_whole: bool, found: &mut Refusals) {
    match kind {
        "HelmRelease" => {
            if is_whole && spec.get("chart").is_none() && spec.get("chartRef").is_none() {
                found.add(keys(&["spec"]), "either chart or chartRef must be set");
            }
            helm_release(spec, found);
        }
        "Kustomization" => {
            const KINDS: [&str; 4] = ["OCIRepository", "GitRepository", "Bucket", "ExternalArtifact"];
            source(spec, &["spec", "sourceRef"], &KINDS, found);
        }
        "GitRepository" => address(spec, &["http://", "https://", "ssh://"], found),
        "HelmRepository" => {
            address(spec, &["http://", "https://", "oci://"], found);
            let (url, of) = (text(spec, "url"), text(spec, "type"));
            if url.starts_with("oci://") && of != "oci" {
                found.add(keys(&["spec", "url"]), "an address that begins with oci:// wants spec.type: oci");
            }
        }
        _ => {}
    }
}

/// A release takes its chart from one place. Releases of the first version have no `chartRef`.
fn helm_release(spec: &Value, found: &mut Refusals) {
    let has = |field: &str| spec.get(field).is_some_and(Value::is_object);
    if has("chart") && has("chartRef") {
        found.add(keys(&["spec", "chartRef"]), "either chart or chartRef must be set");
    }
    source(spec, &["spec", "chartRef"], &["OCIRepository", "HelmChart", "ExternalArtifact"], found);
    let Some(chart) = spec.at(&["chart", "spec"]).filter(|it| it.is_object()) else { return };
    source(
        spec,
        &["spec", "chart", "spec", "sourceRef"],
        &["HelmRepository", "GitRepository", "Bucket"],
        found,
    );
    if chart.get("sourceRef").is_none() && !text(chart, "chart").is_empty() {
        found.add(keys(&["spec", "chart", "spec"]), "spec.chart.spec.sourceRef: Required value");
    }
}

/// The kinds that a source may be of.
fn source(spec: &Value, place: &[&str], kinds: &[&str], found: &mut Refusals) {
    let kind = spec.at(&place[1..]).map(|it| text(it, "kind")).unwrap_or_default();
    if !kind.is_empty() && !kinds.contains(&kind) {
        let quoted: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
        let message = format!(
            "{}.kind: Unsupported value: {kind:?}: supported values: {}",
            place.join("."),
            quoted.join(", ")
        );
        found.add(keys(place).key("kind"), message);
    }
}

/// How an address may begin.
fn address(spec: &Value, schemes: &[&str], found: &mut Refusals) {
    let url = text(spec, "url");
    let is_filled_in = url.contains("${") || url.contains("{{");
    if !url.is_empty() && !is_filled_in && !schemes.iter().any(|scheme| url.starts_with(scheme)) {
        let message = format!("spec.url: Invalid value: {url:?}: must begin with {}", schemes.join(", "));
        found.add(keys(&["spec", "url"]), message);
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::{Value, json};

    use super::{Refusals, check};

    fn refused(kind: &str, spec: &Value) -> Vec<String> {
        let mut found = Refusals::default();
        check(kind, spec, true, &mut found);
        found.0.into_iter().map(|it| it.field.to_string()).collect()
    }

    #[test]
    fn charts_come_from_one_source_of_a_right_kind() {
        let chart = |source: Value| json!({"chart": {"spec": {"chart": "web", "sourceRef": source}}});
        assert!(refused("HelmRelease", &chart(json!({"kind": "HelmRepository", "name": "shop"}))).is_empty());
        let of_oci = refused("HelmRelease", &chart(json!({"kind": "OCIRepository", "name": "shop"})));
        assert_eq!(of_oci, [".spec.chart.spec.sourceRef.kind"]);
        let without = json!({"chart": {"spec": {"chart": "oci://registry.example.com/web"}}});
        assert_eq!(refused("HelmRelease", &without), [".spec.chart.spec"]);
        let two = json!({"chart": {"spec": {}}, "chartRef": {"kind": "OCIRepository", "name": "web"}});
        assert_eq!(refused("HelmRelease", &two), [".spec.chartRef"]);
        assert_eq!(refused("HelmRelease", &json!({"values": {}})), [".spec"]);
    }

    #[test]
    fn addresses_have_a_scheme_that_is_taken() {
        assert_eq!(refused("GitRepository", &json!({"url": "git@example.com:shop.git"})), [".spec.url"]);
        assert!(refused("GitRepository", &json!({"url": "ssh://git@example.com/shop.git"})).is_empty());
        assert!(refused("GitRepository", &json!({"url": "${REPOSITORY}"})).is_empty());
        assert_eq!(refused("HelmRepository", &json!({"url": "oci://example.com/charts"})), [".spec.url"]);
        let oci = json!({"url": "oci://example.com/charts", "type": "oci"});
        assert!(refused("HelmRepository", &oci).is_empty());
    }
}
