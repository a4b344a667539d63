//! Flags that `helm template` takes and makes no use of: of an installation, of its log, of a cluster that it
//! does not ask. What is no value for them is refused, as Helm refuses it.

use anyhow::bail;
use tiphys_gocompat::time::Duration;

/// Flags without effect.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Idle {
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true, alias = "colour", value_parser = ["never", "auto", "always"])]
    color: Option<String>,
    /// Caches of Helm's own; what is fetched is kept in that of Tiphys.
    #[arg(long, hide = true, value_name = "FOLDER")]
    content_cache: Option<String>,
    #[arg(long, hide = true, value_name = "FOLDER")]
    repository_cache: Option<String>,
    #[arg(long, hide = true)]
    debug: bool,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    force_conflicts: bool,
    #[arg(long, hide = true)]
    force_replace: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, hide = true)]
    keyring: Option<String>,
    #[arg(long, short, hide = true)]
    labels: Vec<String>,
    #[arg(long, hide = true)]
    post_renderer_args: Vec<String>,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    rollback_on_failure: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    server_side: Option<Option<bool>>,
    #[arg(long, hide = true)]
    take_ownership: bool,
    #[arg(long, hide = true)]
    timeout: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, value_parser = ["watcher", "hookOnly", "legacy", "true", "false"])]
    wait: Option<Option<String>>,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
    // CRDs are left out unless they are asked for, dependencies are fetched anyway, nothing is installed.
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    dependency_update: bool,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[command(flatten)]
    cluster: Cluster,
}

/// How Helm would reach a cluster.
#[derive(Debug, Default, clap::Args)]
struct Cluster {
    #[arg(long, hide = true, allow_negative_numbers = true)]
    burst_limit: Option<i64>,
    #[arg(long, hide = true, allow_negative_numbers = true)]
    qps: Option<f32>,
    #[arg(long, hide = true)]
    kube_apiserver: Option<String>,
    #[arg(long, hide = true)]
    kube_as_group: Vec<String>,
    #[arg(long, hide = true)]
    kube_as_user: Option<String>,
    #[arg(long, hide = true)]
    kube_ca_file: Option<String>,
    #[arg(long, hide = true)]
    kube_insecure_skip_tls_verify: bool,
    #[arg(long, hide = true)]
    kube_tls_server_name: Option<String>,
    #[arg(long, hide = true)]
    kube_token: Option<String>,
}

impl Idle {
    /// Whether what is no YAML is to be printed.
    pub(super) fn debug(&self) -> bool {
        self.debug
    }

    /// Says which flags Helm 4 has given up, as it does.
    pub(super) fn warn(&self) {
        const UNUSED: &str = "this flag has no effect for 'helm template' and will be removed in Helm 5";
        for (given, flag, instead) in [
            (self.force, "force", "use --force-replace instead"),
            (self.atomic, "atomic", "use --rollback-on-failure instead"),
            (self.hide_notes, "hide-notes", UNUSED),
            (self.render_subchart_notes, "render-subchart-notes", UNUSED),
        ] {
            if given {
                eprintln!("Flag --{flag} has been deprecated, {instead}");
            }
        }
    }

    /// Refuses values that are none, and with `asks_cluster` what says how it is to be reached.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self, asks_cluster: bool) -> anyhow::Result<()> {
        if let Some(text) = &self.timeout
            && let Err(error) = Duration::parse(text)
        {
            bail!("invalid argument {text:?} for \"--timeout\" flag: {error}");
        }
        for text in &self.labels {
            // Only of several pairs is the comma a separator.
            let pairs =
                if text.matches('=').count() == 1 { vec![text.as_str()] } else { text.split(',').collect() };
            if let Some(wrong) = pairs.into_iter().find(|pair| !pair.contains('=')) {
                bail!(
                    "invalid argument {text:?} for \"-l, --labels\" flag: {wrong} must be formatted as key=value"
                );
            }
        }
        match self.cluster.identity_flag().filter(|_| asks_cluster) {
            Some(flag) => {
                bail!("{flag} is not supported: write it into the kubeconfig that --kubeconfig names")
            }
            None => Ok(()),
        }
    }
}

impl Cluster {
    /// A flag that was given and that changes which cluster is asked, or as whom.
    fn identity_flag(&self) -> Option<&'static str> {
        [
            (self.kube_apiserver.is_some(), "--kube-apiserver"),
            (!self.kube_as_group.is_empty(), "--kube-as-group"),
            (self.kube_as_user.is_some(), "--kube-as-user"),
            (self.kube_ca_file.is_some(), "--kube-ca-file"),
            (self.kube_insecure_skip_tls_verify, "--kube-insecure-skip-tls-verify"),
            (self.kube_tls_server_name.is_some(), "--kube-tls-server-name"),
            (self.kube_token.is_some(), "--kube-token"),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }
}
