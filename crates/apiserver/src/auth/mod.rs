//! Who asks, and what they may do.

mod escalation;
mod rbac;
mod review;
mod token;

pub(crate) use escalation::check as check_escalation;
pub use rbac::why_account_may_not;
pub(crate) use rbac::{Attributes, authorize, is_allowed};
pub(crate) use review::review;
pub(crate) use token::{authenticate, issue_token};

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// What an impersonating client added (`Impersonate-Extra-…`).
    pub extra: std::collections::BTreeMap<String, Vec<String>>,
}

impl User {
    /// The cluster's administrator.
    pub(crate) fn admin() -> Self {
        Self {
            name: "kubernetes-admin".into(),
            uid: String::new(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
            ..Self::default()
        }
    }

    /// A service account, as its token names it.
    pub(crate) fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.into(),
            groups: vec![
                "system:serviceaccounts".into(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".into(),
            ],
            ..Self::default()
        }
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.groups.iter().any(|g| g == "system:masters")
    }
}
