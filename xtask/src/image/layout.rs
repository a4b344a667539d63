//! The blobs of an image layout and how they name each other.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use super::{
    USER,
    content::{HOME, PROGRAM},
};
use crate::release::archive::{gzip, sha256};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The image for one machine.
pub(super) struct Image {
    /// As images call it.
    pub machine: &'static str,
    /// Its layers as tar streams, the lowest first.
    pub layers: Vec<Vec<u8>>,
}

/// Everything that a layout consists of.
pub(super) struct Layout {
    blobs: BTreeMap<String, Vec<u8>>,
    index: Value,
}

impl Layout {
    /// A layout with one image for several machines, named by its version.
    ///
    /// # Errors
    /// A layer cannot be compressed.
    pub(super) fn new(images: &[Image], version: &str, time: u64) -> anyhow::Result<Self> {
        let mut layout = Self { blobs: BTreeMap::new(), index: Value::Null };
        let annotations = json!({
            "org.opencontainers.image.title": "tiphys",
            "org.opencontainers.image.description": "GitOps engine for Kubernetes",
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
        });
        let mut manifests = Vec::new();
        for image in images {
            let mut manifest = layout.add_image(image, &annotations, time)?;
            manifest["platform"] = json!({"os": "linux", "architecture": image.machine});
            manifests.push(manifest);
        }
        let all = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": annotations});
        let mut all = layout.add_json(INDEX, &all);
        all["annotations"] = json!({"org.opencontainers.image.ref.name": version});
        layout.index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [all]});
        Ok(layout)
    }

    fn add_image(&mut self, image: &Image, annotations: &Value, time: u64) -> anyhow::Result<Value> {
        let mut layers = Vec::new();
        for layer in &image.layers {
            layers.push(self.add(LAYER, gzip(layer)?));
        }
        let contents: Vec<String> =
            image.layers.iter().map(|layer| format!("sha256:{}", sha256(layer))).collect();
        let created = jiff::Timestamp::from_second(i64::try_from(time)?)?.to_string();
        let history: Vec<Value> = contents.iter().map(|_| json!({"created": created})).collect();
        let config = json!({
            "created": created,
            "os": "linux",
            "architecture": image.machine,
            "config": {
                "User": format!("{USER}:{USER}"),
                "Entrypoint": [format!("/{PROGRAM}")],
                "Env": ["PATH=/usr/bin", format!("HOME=/{HOME}")],
                "WorkingDir": "/",
                "Labels": annotations,
            },
            "rootfs": {"type": "layers", "diff_ids": contents},
            "history": history,
        });
        let config = self.add_json(CONFIG, &config);
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        Ok(self.add_json(MANIFEST, &manifest))
    }

    fn add_json(&mut self, kind: &str, value: &Value) -> Value {
        self.add(kind, value.to_string().into_bytes())
    }

    /// Adds a blob; returns the descriptor by which others name it.
    fn add(&mut self, kind: &str, content: Vec<u8>) -> Value {
        let digest = sha256(&content);
        let descriptor =
            json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": content.len()});
        self.blobs.insert(digest, content);
        descriptor
    }

    /// The digest by which a registry knows the image.
    pub(super) fn digest(&self) -> &str {
        self.index["manifests"][0]["digest"].as_str().unwrap_or_default()
    }

    /// How many bytes all blobs have.
    pub(super) fn size(&self) -> usize {
        self.blobs.values().map(Vec::len).sum()
    }

    /// Writes it into a folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs)?;
        for (digest, content) in &self.blobs {
            fs::write(blobs.join(digest), content)?;
        }
        fs::write(folder.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
        Ok(fs::write(folder.join("index.json"), self.index.to_string())?)
    }
}
