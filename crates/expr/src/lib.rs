//! Hosts for the expression languages that Kubernetes objects contain: limited, without IO or clock.
//!
//! CEL stands in the rules of CustomResourceDefinitions, in admission policies and in the match
//! conditions of webhooks. The language and Kubernetes' libraries come from the crate `kube-cel`; what
//! is added here is the API server's view of objects, its messages and its limits.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod cel;
