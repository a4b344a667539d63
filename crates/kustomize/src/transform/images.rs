//! Image names, tags and digests.

use tiphys_diag::similar_names::nearest;
use tiphys_gocompat::regex::Regex;

use super::Transformer;
use crate::{
    context::Context,
    error::{Error, Result},
    fields::Route,
    kustomization::model::{FieldSpec, Image},
    meter::Meter,
    node::{Content, Kind, Node},
    resource_map::ResourceMap,
};

/// Changes the images of one name.
pub(crate) struct ImageTag {
    pub image: Image,
    pub specs: Vec<FieldSpec>,
}

impl Transformer for ImageTag {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        let name = ImageName::new(&self.image.name);
        let routes = Route::all(&self.specs);
        let mut found = false;
        for resource in &mut objects.list {
            context.check_time()?;
            if resource.node.object_kind() == "CustomResourceDefinition" {
                continue;
            }
            resource.touched = true;
            let mut set = |node: &mut Node| {
                found |= self.set(node, &name, &context.meter)?;
                Ok(())
            };
            in_containers(&mut resource.node, &mut set).map_err(Error::transform)?;
            for route in &routes {
                route.apply(&mut resource.node, None, &mut set).map_err(Error::transform)?;
            }
        }
        if !found {
            context.notes.extend(self.misspelt(objects));
        }
        Ok(())
    }
}

/// The name that images are matched by: kustomize takes it for a regular expression.
enum ImageName<'a> {
    Literal(&'a str),
    Regex(Option<Regex>),
}

const TAG_LETTERS: &str = "[a-zA-Z0-9_.{}-]*";

impl<'a> ImageName<'a> {
    fn new(name: &'a str) -> Self {
        if name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | ':')) {
            return Self::Literal(name);
        }
        let pattern = format!("^{name}(:{TAG_LETTERS})?(@sha256:{TAG_LETTERS})?$");
        Self::Regex(Regex::compile(&pattern).ok())
    }

    fn matches(&self, image: &str) -> bool {
        match self {
            Self::Regex(regex) => regex.as_ref().is_some_and(|regex| regex.is_match(image)),
            Self::Literal(name) => image.strip_prefix(name).is_some_and(is_tag_and_digest),
        }
    }
}

/// `:tag`, `@sha256:digest`, both, or nothing.
fn is_tag_and_digest(text: &str) -> bool {
    let letters = |text: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '{' | '}' | '-'))
    };
    let (tag, digest) = match text.split_once("@sha256:") {
        Some((tag, digest)) => (tag, Some(digest)),
        None => (text, None),
    };
    let tag_fits = tag.is_empty() || tag.strip_prefix(':').is_some_and(letters);
    tag_fits && digest.is_none_or(letters)
}

/// Does something with every `image` in lists named `containers` or `initContainers`, wherever they stand.
fn in_containers(
    node: &mut Node,
    each: &mut dyn FnMut(&mut Node) -> Result<(), String>,
) -> Result<(), String> {
    match &mut node.content {
        Content::Scalar(_) => Ok(()),
        Content::Seq(items) => items.iter_mut().try_for_each(|item| in_containers(item, each)),
        Content::Map(pairs) => {
            for (key, value) in pairs {
                in_containers(value, each)?;
                if matches!(key.value(), "containers" | "initContainers") {
                    in_list(value, each)?;
                }
            }
            Ok(())
        }
    }
}

fn in_list(list: &mut Node, each: &mut dyn FnMut(&mut Node) -> Result<(), String>) -> Result<(), String> {
    for container in list.items_mut().into_iter().flatten() {
        if !container.is_null() {
            container.expect(Kind::Map)?;
        }
        if let Some(image) = container.get_mut("image") {
            each(image)?;
        }
    }
    Ok(())
}

/// Splits an image into name, tag and digest.
pub(crate) fn split_image(image: &str) -> (&str, &str, &str) {
    let from = image.find('/').filter(|at| *at > 0).unwrap_or(0);
    let at = |letter: char| image[from..].find(letter).map(|at| at + from);
    match (at('@'), at(':')) {
        (None, None) => (image, "", ""),
        (Some(digest), None) => (&image[..digest], "", &image[digest + 1..]),
        (Some(digest), Some(tag)) if digest < tag => (&image[..digest], "", &image[digest + 1..]),
        (Some(digest), Some(tag)) => (&image[..tag], &image[tag + 1..digest], &image[digest + 1..]),
        (None, Some(tag)) => (&image[..tag], &image[tag + 1..], ""),
    }
}

impl ImageTag {
    /// Changes an image of the name; says whether it is one.
    fn set(&self, node: &mut Node, name: &ImageName<'_>, meter: &Meter) -> Result<bool, String> {
        node.expect(Kind::Scalar)?;
        if !name.matches(node.value()) {
            return Ok(false);
        }
        let changed = self.changed(node.value());
        meter.take(changed.len())?;
        node.set_scalar(Node::scalar(changed))?;
        Ok(true)
    }

    /// Kustomize says nothing of a name that no image has. It need not be a mistake, for many overlays share
    /// their images; it most likely is one where an image has nearly that name, or that name without its
    /// registry.
    fn misspelt(&self, objects: &mut ResourceMap) -> Option<String> {
        let mut names = std::collections::BTreeSet::new();
        for resource in &mut objects.list {
            let mut note = |node: &mut Node| {
                names.insert(split_image(node.value()).0.to_owned());
                Ok(())
            };
            in_containers(&mut resource.node, &mut note).ok()?;
        }
        let wanted = self.image.name.as_str();
        let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let same_last = names.iter().find(|name| last(name) == last(wanted));
        let nearest = match same_last {
            Some(name) => name,
            None => {
                let full = nearest(wanted, names.iter().map(String::as_str))?;
                // One that is only the beginning of another is another image.
                if full.starts_with(wanted) || wanted.starts_with(full) { return None } else { full }
            }
        };
        Some(format!("no image is named `{wanted}`; did you mean `{nearest}`?"))
    }

    fn changed(&self, value: &str) -> String {
        let wanted = &self.image;
        let (name, tag, digest) = split_image(value);
        let name = if wanted.new_name.is_empty() { name } else { &wanted.new_name };
        let (tag, digest) = match (wanted.new_tag.is_empty(), wanted.digest.is_empty()) {
            (false, false) => (wanted.new_tag.clone(), wanted.digest.as_str()),
            (false, true) => (wanted.new_tag.clone(), ""),
            (true, false) => (String::new(), wanted.digest.as_str()),
            (true, true) if !wanted.tag_suffix.is_empty() => (format!("{tag}{}", wanted.tag_suffix), ""),
            (true, true) => (tag.to_owned(), digest),
        };
        let mut image = name.to_owned();
        if !tag.is_empty() {
            image = format!("{image}:{tag}");
        }
        if !digest.is_empty() {
            image = format!("{image}@{digest}");
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_images() {
        for (image, parts) in [
            ("nginx", ("nginx", "", "")),
            ("host:5000/a/b:1@sha256:ff", ("host:5000/a/b", "1", "sha256:ff")),
            ("a/b@sha256:ff", ("a/b", "", "sha256:ff")),
            ("a:1", ("a", "1", "")),
        ] {
            assert_eq!(split_image(image), parts, "{image}");
        }
    }

    #[test]
    fn matches_by_name() {
        let fits = |name, image| ImageName::new(name).matches(image);
        assert!(fits("nginx", "nginx:1.2@sha256:ff") && fits("nginx", "nginx"));
        assert!(!fits("nginx", "my/nginx") && !fits("nginx", "nginx2"));
        assert!(fits("docker.io/nginx", "docker.io/nginx:1"));
    }
}
