//! The kustomize options of an Argo CD Application, as an edit of the kustomization in memory.

use std::collections::BTreeMap;

use tiphys_gocompat::strconv::quote;

use crate::{
    error::{Context as _, Error, ErrorKind, Result},
    kustomization::{
        Kustomization, from_conformed,
        go_json::{Mode, conform},
        model::{Image, Label, Patch, Replica},
        types,
    },
    loader::Loader,
    options::Overlay,
    transform::split_image,
};

/// Edits a loaded kustomization as Argo CD's `kustomize edit` commands would edit its file.
///
/// # Errors
/// Labels or annotations that are there already and not forced, images or patches that cannot be
/// read.
pub(crate) fn apply(overlay: &Overlay, k: &mut Kustomization, loader: &Loader<'_>) -> Result<()> {
    for (field, value) in [
        (&mut k.name_prefix, &overlay.name_prefix),
        (&mut k.name_suffix, &overlay.name_suffix),
        (&mut k.namespace, &overlay.namespace),
    ] {
        if !value.is_empty() {
            field.clone_from(value);
        }
    }
    if !overlay.images.is_empty() {
        set_images(overlay, &mut k.images)?;
    }
    if !overlay.replicas.is_empty() {
        set_replicas(overlay, &mut k.replicas);
    }
    if !overlay.common_labels.is_empty() {
        add_labels(overlay, k)?;
    }
    for (key, value) in &overlay.common_annotations {
        let value =
            if overlay.common_annotations_envsubst { overlay.substitute(value) } else { value.clone() };
        let (key, value) = pair(key, &value, "annotation")?;
        add(&mut k.common_annotations, &key, value, overlay.force_common_annotations, "annotation")?;
    }
    for patch in &overlay.patches {
        let patch = conform(patch, &types::PATCH, Mode::Strict).map_err(|misfit| {
            Error::new(ErrorKind::Kustomization, format!("kustomize.patches: {}", misfit.message))
        })?;
        k.patches.push(from_conformed::<Patch>(&patch)?);
    }
    for pattern in &overlay.components {
        if overlay.ignore_missing_components && !loader.exists(pattern) {
            continue;
        }
        for component in components(pattern, loader)? {
            if !k.components.contains(&component) {
                k.components.push(component);
            }
        }
    }
    Ok(())
}

/// `kustomize edit add component`: what a glob matches, or one place that is there.
fn components(pattern: &str, loader: &Loader<'_>) -> Result<Vec<String>> {
    let found = loader.glob(pattern);
    if !found.is_empty() {
        return Ok(found);
    }
    loader.enter(pattern).context(|| format!("{pattern} has no match"))?;
    Ok(vec![pattern.to_owned()])
}

/// A label or annotation as `kustomize edit add` reads `key:value`: the first colon separates, quotes around
/// the value are dropped.
fn pair(key: &str, value: &str, what: &str) -> Result<(String, String)> {
    let text = format!("{key}:{value}");
    match text.split_once(':') {
        Some((key, value)) if !key.is_empty() => {
            let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
            Ok((key.to_owned(), bare.to_owned()))
        }
        _ => Err(Error::new(
            ErrorKind::Kustomization,
            format!("invalid {what}: '{text}' (need k:v pair where v may be quoted)"),
        )),
    }
}

/// `kustomize edit set image`: entries of the same name are replaced, the list is sorted by name. `*`
/// keeps what the entry has.
fn set_images(overlay: &Overlay, images: &mut Vec<Image>) -> Result<()> {
    let mut by_name: BTreeMap<String, Image> = BTreeMap::new();
    for text in &overlay.images {
        let image = parse_image(&overlay.substitute(text))?;
        by_name.insert(image.name.clone(), image);
    }
    for old in std::mem::take(images) {
        let Some(new) = by_name.get_mut(&old.name) else {
            by_name.insert(old.name.clone(), old);
            continue;
        };
        for (new, old) in [
            (&mut new.new_name, old.new_name),
            (&mut new.new_tag, old.new_tag),
            (&mut new.digest, old.digest),
        ] {
            if new == "*" {
                *new = old;
            }
        }
    }
    for image in by_name.values_mut() {
        for part in [&mut image.new_name, &mut image.new_tag, &mut image.digest] {
            if part == "*" {
                part.clear();
            }
        }
    }
    *images = by_name.into_values().collect();
    Ok(())
}

/// `[old=]name[:tag][@digest]`
fn parse_image(text: &str) -> Result<Image> {
    let (key, value) = text.split_once('=').unwrap_or(("", text));
    let (name, tag, digest) = split_image(value);
    if name == text {
        return Err(Error::new(
            ErrorKind::Kustomization,
            format!(
                "invalid image {}: expected <image>=<newimage>:<newtag>@<digest>, <image>=<newimage>, <image>:<newtag> or <image>@<digest>",
                quote(text)
            ),
        ));
    }
    let (name, new_name) = if key.is_empty() { (name, "") } else { (key, name) };
    Ok(Image {
        name: name.to_owned(),
        new_name: new_name.to_owned(),
        new_tag: tag.to_owned(),
        digest: digest.to_owned(),
        tag_suffix: String::new(),
    })
}

/// `kustomize edit set replicas`.
fn set_replicas(overlay: &Overlay, replicas: &mut Vec<Replica>) {
    let mut by_name: BTreeMap<String, Replica> =
        std::mem::take(replicas).into_iter().map(|replica| (replica.name.clone(), replica)).collect();
    for (name, count) in &overlay.replicas {
        by_name.insert(name.clone(), Replica { name: name.clone(), count: *count });
    }
    *replicas = by_name.into_values().collect();
}

/// `kustomize edit add label`: into `commonLabels`, or into the entry of `labels` with the same flags.
fn add_labels(overlay: &Overlay, k: &mut Kustomization) -> Result<()> {
    if overlay.label_include_templates && !overlay.label_without_selector {
        return Err(Error::new(
            ErrorKind::Kustomization,
            "--without-selector flag must be specified for --include-templates to work",
        ));
    }
    let force = overlay.force_common_labels;
    let templates = overlay.label_include_templates;
    for (key, value) in &overlay.common_labels {
        let (key, value) = pair(key, &overlay.substitute(value), "label")?;
        if !overlay.label_without_selector {
            add(k.common_labels.get_or_insert_default(), &key, value, force, "label")?;
            continue;
        }
        let fits = |label: &&mut Label| !label.include_selectors && label.include_templates == templates;
        match k.labels.iter_mut().find(fits) {
            Some(label) => add(&mut label.pairs, &key, value, force, "label")?,
            None => {
                let pairs = BTreeMap::from([(key, value)]);
                k.labels.push(Label { pairs, include_templates: templates, ..Label::default() });
            }
        }
    }
    Ok(())
}

fn add(map: &mut BTreeMap<String, String>, key: &str, value: String, force: bool, what: &str) -> Result<()> {
    if map.contains_key(key) && !force {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("{what} {key} already in kustomization file. Use --force to override."),
        )
        .advise(format!(
            "set the Application's `forceCommon{}s: true`",
            if what == "label" { "Label" } else { "Annotation" }
        )));
    }
    map.insert(key.to_owned(), value);
    Ok(())
}

impl Overlay {
    /// Whether nothing would be edited.
    pub(crate) fn edits_nothing(&self) -> bool {
        self.name_prefix.is_empty()
            && self.name_suffix.is_empty()
            && self.namespace.is_empty()
            && self.images.is_empty()
            && self.replicas.is_empty()
            && self.common_labels.is_empty()
            && self.common_annotations.is_empty()
            && self.patches.is_empty()
            && self.components.is_empty()
    }

    /// Replaces `$VAR` and `${VAR}` as Go's `os.Expand`; unknown names become empty, `$$` a dollar.
    fn substitute(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let (name, after) = variable(rest);
            match name {
                Some("$") => out.push('$'),
                Some(name) => out.push_str(self.env.get(name).map(String::as_str).unwrap_or_default()),
                None if after.len() == rest.len() => out.push('$'),
                None => {}
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// The name after a dollar, and what follows it.
fn variable(text: &str) -> (Option<&str>, &str) {
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.split_once('}') {
            Some(("", after)) => (None, after),
            Some((name, after)) => (Some(name), after),
            None => (None, inner),
        };
    }
    if text.starts_with(['*', '#', '$', '@', '!', '?', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
    {
        return (text.get(..1), &text[1..]);
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    if end == 0 { (None, text) } else { (Some(&text[..end]), &text[end..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitutes_as_os_expand() {
        let overlay = Overlay { env: BTreeMap::from([("A".into(), "x".into())]), ..Overlay::default() };
        for (text, expected) in
            [("$A-${A}b", "x-xb"), ("$$A", "$A"), ("${B}$B.", "."), ("a$ b", "a$ b"), ("end$", "end$")]
        {
            assert_eq!(overlay.substitute(text), expected, "{text}");
        }
    }

    #[test]
    fn images_replace_and_sort() {
        let overlay =
            Overlay { images: vec!["b=other/b:*".into(), "a@sha256:1".into()], ..Overlay::default() };
        let mut images = vec![Image { name: "b".into(), new_tag: "7".into(), ..Image::default() }];
        set_images(&overlay, &mut images).unwrap();
        let found: Vec<_> =
            images.iter().map(|i| (i.name.as_str(), i.new_name.as_str(), i.new_tag.as_str())).collect();
        assert_eq!(found, [("a", "", ""), ("b", "other/b", "7")]);
        assert!(parse_image("plain").is_err());
    }
}
