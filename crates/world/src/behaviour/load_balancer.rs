//! Who gives load balancers an address where no cloud does.

use std::sync::LazyLock;

use serde_json::Value;

use super::{Pattern, listed, runs_image};

static IMAGES: LazyLock<Vec<Pattern>> =
    LazyLock::new(|| listed(include_str!("../../data/load-balancers.yaml")));

/// The image by which a pod is one that gives load balancers an address.
pub fn load_balancer_image(pod: &Value) -> Option<&'static Pattern> {
    IMAGES.iter().find(|image| runs_image(pod, image))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_that_give_addresses_are_known_by_their_image() {
        let pod = |image: &str| json!({"spec": {"containers": [{"image": image}]}});
        assert!(load_balancer_image(&pod("quay.io/metallb/controller:v0.14.8")).is_some());
        assert!(load_balancer_image(&pod("quay.io/metallb/speaker:v0.14.8")).is_none());
    }
}
