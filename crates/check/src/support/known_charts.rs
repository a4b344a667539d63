//! What is known of charts that were not seen.

use tiphys_model::ApplicationSource;

/// Whether a chart's version, or all versions of a range, come before another.
pub fn is_older(wanted: &str, first: &str) -> bool {
    let digits = |text: &str| -> Vec<u64> {
        let text = text.trim_start_matches(['v', '^', '~', '=', '>', '<', ' ']);
        text.split(['.', '-', '+', ' ']).map_while(|part| part.parse().ok()).collect()
    };
    let (wanted, first) = (digits(wanted), digits(first));
    let known = wanted.len().min(first.len());
    wanted[..known] < first[..known]
}

/// The values that a source gives its chart in its own text, the weakest first.
pub fn inline_values(source: &ApplicationSource) -> Vec<tiphys_value::Value> {
    let Some(helm) = &source.helm else { return Vec::new() };
    tiphys_yaml::from_yaml(&helm.values).into_iter().chain(helm.values_object.iter().cloned()).collect()
}

/// Whether the source keeps the chart's CRDs out: `skipCrds`, or values that say so in one of the usual ways.
pub fn leaves_out_crds(source: &ApplicationSource) -> bool {
    let Some(helm) = &source.helm else { return false };
    let values = inline_values(source);
    let off = |value: &tiphys_value::Value| {
        let says_no = |pointer: &str| value.pointer(pointer) == Some(&tiphys_value::Value::Bool(false));
        [
            "/installCRDs",
            "/prometheus-operator-crds/enabled",
            "/crds/enabled",
            "/crds/install",
            "/crds/create",
            "/crd/enabled",
            "/crds/createCRDs",
        ]
        .iter()
        .any(|pointer| says_no(pointer))
    };
    helm.skip_crds || values.iter().any(off)
}
