//! Names that stand for something in Applications that the survey makes or completes.

/// Namespace of the engine, where Applications live that name none: Argo CD's.
pub const ENGINE_NAMESPACE: &str = "argocd";

/// The address under which units ask for this repository.
pub(super) const THIS_REPOSITORY: &str = "file:///this-repository";

/// The version of kustomize that stands for the one in Flux's kustomize-controller, which reads files
/// anywhere in the repository.
pub(super) const AS_FLUX: &str = "flux";
