//! Older spellings: what `FixKustomization` moves to the fields of today, and the warnings for it.

use super::model::{GeneratorArgs, HelmChart, HelmGlobals, Kustomization, OldHelmChart};

const FIX: &str = "Run 'kustomize edit fix' to update your Kustomization automatically.";

/// What kustomize prints on stderr for fields that are deprecated.
pub(crate) fn warnings(k: &Kustomization) -> Vec<String> {
    let fields = [
        (k.bases.is_some(), "bases", "resources", FIX.to_owned()),
        (k.common_labels.is_some(), "commonLabels", "labels", FIX.to_owned()),
        (k.image_tags.is_some(), "imageTags", "images", FIX.to_owned()),
        (k.patches_json6902.is_some(), "patchesJson6902", "patches", FIX.to_owned()),
        (k.patches_strategic_merge.is_some(), "patchesStrategicMerge", "patches", FIX.to_owned()),
        (k.vars.is_some(), "vars", "replacements", format!("[EXPERIMENTAL] {FIX}")),
    ];
    let used = fields.into_iter().filter(|(used, ..)| *used);
    used.map(|(_, old, new, fix)| {
        format!("# Warning: '{old}' is deprecated. Please use '{new}' instead. {fix}")
    })
    .collect()
}

/// Moves older spellings to the fields of today.
pub(crate) fn fix(k: &mut Kustomization) {
    if k.kind.is_empty() {
        k.kind = super::KIND.to_owned();
    }
    if k.api_version.is_empty() {
        k.api_version = super::api_version_of(&k.kind).to_owned();
    }
    k.resources.extend(k.bases.take().unwrap_or_default());
    k.images.extend(k.image_tags.take().unwrap_or_default());
    for args in k.config_map_generator.iter_mut().chain(&mut k.secret_generator) {
        fix_env(args);
    }
    let old = std::mem::take(&mut k.helm_chart_inflation_generator);
    let globals = old.iter().fold(HelmGlobals::default(), |globals, chart| HelmGlobals {
        chart_home: or(&chart.chart_home, globals.chart_home),
        config_home: or(&chart.helm_home, globals.config_home),
    });
    if k.helm_globals.is_none() && globals != HelmGlobals::default() {
        k.helm_globals = Some(globals);
    }
    k.helm_charts.extend(old.into_iter().map(chart_of));
}

fn or(text: &str, otherwise: String) -> String {
    if text.is_empty() { otherwise } else { text.to_owned() }
}

fn fix_env(args: &mut GeneratorArgs) {
    if !args.env.is_empty() {
        args.envs.push(std::mem::take(&mut args.env));
    }
}

fn chart_of(old: OldHelmChart) -> HelmChart {
    HelmChart {
        name: old.chart_name,
        version: old.chart_version,
        repo: old.chart_repo_url,
        values_file: old.values,
        values_inline: old.values_local,
        values_merge: old.values_merge,
        release_name: old.release_name,
        ..HelmChart::default()
    }
}
