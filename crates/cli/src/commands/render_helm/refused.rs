//! Flags of `helm template` that mean nothing here or that cannot be honoured: those that do not change the output of
//! `helm template` are taken, the others are refused by name.

use anyhow::bail;

/// Flags that scripts written for `helm template` give.
#[derive(Debug, clap::Args)]
pub struct Flags {
    #[arg(long, hide = true)]
    validate: bool,
    #[arg(long, hide = true)]
    enable_dns: bool,
    #[arg(long, hide = true)]
    post_renderer: Option<String>,
    #[arg(long, hide = true)]
    verify: bool,
    // Without effect: CRDs are left out unless they are asked for, dependencies are fetched anyway, nothing is installed.
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    dependency_update: bool,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[command(flatten)]
    idle: Idle,
}

/// Flags of an installation, which `helm template` takes and makes no use of, and those of its log.
#[derive(Debug, clap::Args)]
struct Idle {
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true, alias = "colour")]
    color: Option<String>,
    #[arg(long, hide = true)]
    debug: bool,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(long, hide = true)]
    force_conflicts: bool,
    #[arg(long, hide = true)]
    force_replace: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, short, hide = true)]
    labels: Vec<String>,
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
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    wait: Option<Option<String>>,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
}

impl Flags {
    /// Whether what is no YAML is to be printed.
    pub fn debug(&self) -> bool {
        self.idle.debug
    }

    /// Refuses what cannot be honoured.
    ///
    /// # Errors
    /// Names the flag and what to do.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.validate {
            bail!(
                "--validate is not supported: no manifest is sent to a cluster; for its version and `lookup` use --dry-run=server, to try the chart `tiphys up`"
            );
        }
        if self.enable_dns {
            bail!("--enable-dns is not supported: templates do not ask the network");
        }
        if self.post_renderer.is_some() {
            bail!("--post-renderer is not supported: no other program is run; pipe the output into it");
        }
        if self.verify {
            bail!("--verify is not supported: signatures of charts are not checked");
        }
        Ok(())
    }
}
