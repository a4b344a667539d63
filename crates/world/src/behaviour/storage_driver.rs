//! Who makes the volumes of a StorageClass.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{Pattern, listed};

/// A driver that is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownDriver {
    /// As StorageClasses name it.
    provisioner: Pattern,
    /// The image of its pods.
    image: Pattern,
}

static DRIVERS: LazyLock<Vec<KnownDriver>> =
    LazyLock::new(|| listed(include_str!("../../data/storage-drivers.yaml")));

/// The image of the pods that make the volumes of a provisioner, if that is known.
pub fn storage_driver(provisioner: &str) -> Option<&'static Pattern> {
    DRIVERS.iter().find(|known| known.provisioner.matches(provisioner)).map(|known| &known.image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provisioner_leads_to_the_image_of_its_driver() {
        let image = |provisioner: &str| storage_driver(provisioner).map(Pattern::text);
        assert_eq!(image("driver.longhorn.io"), Some("*longhornio/longhorn-manager*"));
        assert_eq!(image("rook-ceph.rbd.csi.ceph.com"), Some("*rook/ceph:*"));
        assert_eq!(image("rbd.csi.ceph.com"), Some("*cephcsi/cephcsi*"));
        assert_eq!(image("example.com/own"), None);
    }
}
