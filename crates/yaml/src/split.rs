//! Cutting a stream into documents without parsing it, as the Go tools do (and as they differ).

/// The documents of a stream as k8s.io/apimachinery's `YAMLReader` cuts them: at lines that begin
/// with `---`. Each with the byte offset of its first byte.
pub fn split_kubernetes_documents(text: &str) -> Vec<(usize, &str)> {
    vec![(0, text)]
}

/// The documents of rendered templates as Helm's `SplitManifests` cuts them; empty ones left out.
/// Each with the byte offset of its first byte.
pub fn split_helm_manifests(text: &str) -> Vec<(usize, &str)> {
    vec![(0, text)]
}
