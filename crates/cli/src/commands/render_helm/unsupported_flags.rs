//! Flags of `helm template` that cannot be honoured: they are refused by name.

use anyhow::bail;

/// Flags that scripts written for `helm template` give.
#[derive(Debug, clap::Args)]
pub(super) struct Refused {
    #[arg(long, hide = true)]
    validate: bool,
    #[arg(long, hide = true)]
    enable_dns: bool,
    #[arg(long, hide = true)]
    post_renderer: Option<String>,
    #[arg(long, hide = true)]
    verify: bool,
}

impl Refused {
    /// Refuses what cannot be honoured.
    ///
    /// # Errors
    /// Names the flag and what to do.
    pub(super) fn check(&self) -> anyhow::Result<()> {
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
