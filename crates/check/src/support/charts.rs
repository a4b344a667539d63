//! What is known of charts that were not seen.

use tiphys_model::ApplicationSource;

/// Whether the source keeps the chart's CRDs out: `skipCrds`, or values that say so in one of the usual ways.
pub fn leaves_out_crds(source: &ApplicationSource) -> bool {
    let Some(helm) = &source.helm else { return false };
    let mut values: Vec<tiphys_value::Value> = helm.values_object.iter().cloned().collect();
    values.extend(tiphys_yaml::from_yaml(&helm.values));
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
