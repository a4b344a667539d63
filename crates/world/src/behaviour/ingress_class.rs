//! Who serves the Ingresses of a class: whether an Ingress gets an address.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;
use tiphys_diag::similar_names::nearest_slip_beside_numbers;
use tiphys_value::ObjectExt;

use super::{Pattern, listed};

/// An ingress controller that is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownController {
    /// As IngressClasses name it.
    controller: String,
    /// The image of its pods.
    image: Pattern,
}

static CONTROLLERS: LazyLock<Vec<KnownController>> =
    LazyLock::new(|| listed(include_str!("../../data/ingress-controllers.yaml")));

/// Who serves an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server<'a> {
    /// Somebody of whom nothing is known, such as a cloud.
    Unknown,
    /// Nobody: its class is a slip for this one.
    Slip(&'a str),
    /// Pods with an image of this pattern.
    Pods(&'static Pattern),
}

/// Who serves an Ingress, given the classes of the cluster.
pub fn ingress_server<'a>(ingress: &Value, classes: &[&'a Value]) -> Server<'a> {
    let Some(name) = ingress.str_at(&["spec", "ingressClassName"]).filter(|name| !name.is_empty()) else {
        return Server::Unknown;
    };
    let Some(class) = classes.iter().find(|class| class.name() == name) else {
        let slip = nearest_slip_beside_numbers(name, classes.iter().map(|class| class.name()));
        return slip.map_or(Server::Unknown, Server::Slip);
    };
    let controller = class.str_at(&["spec", "controller"]).unwrap_or_default();
    let known = CONTROLLERS.iter().find(|known| known.controller == controller);
    known.map_or(Server::Unknown, |known| Server::Pods(&known.image))
}

/// Whether a pod runs a container with an image of a pattern.
pub fn runs_image(pod: &Value, image: &Pattern) -> bool {
    let mut containers = pod.at(&["spec", "containers"]).and_then(Value::as_array).into_iter().flatten();
    containers.any(|it| image.matches_image(it.str_at(&["image"]).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_class_leads_to_the_image_of_its_controller() {
        let class = |name: &str, controller: &str| json!({"kind": "IngressClass", "metadata": {"name": name}, "spec": {"controller": controller}});
        let all = [class("nginx", "k8s.io/ingress-nginx"), class("edge", "example.com/own")];
        let all: Vec<&Value> = all.iter().collect();
        let server = |name: &str| ingress_server(&json!({"spec": {"ingressClassName": name}}), &all);
        let Server::Pods(image) = server("nginx") else { panic!("{:?}", server("nginx")) };
        assert!(image.matches_image("registry.k8s.io/ingress-nginx/controller:v1"));
        assert_eq!(server("ngnix"), Server::Slip("nginx"));
        for unknown in ["edge", "alb", ""] {
            assert_eq!(server(unknown), Server::Unknown, "{unknown}");
        }
    }
}
