//! The command line of `tiphys up`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::ValueEnum;

use tiphys_apiserver::{KubernetesVersion, ServiceNetwork};

use crate::duration;

/// When something stands in for what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Definitions where something is out of reach that may bring them.
    #[default]
    Auto,
    /// Definitions for every kind that something waits for and nothing brings, and Secrets and ConfigMaps
    /// that pods name.
    Always,
    /// Never.
    Never,
}

/// Run a repository's Applications on the embedded cluster and follow its changes.
///
/// Exit codes with --once: 0 all Applications are Synced and Healthy; 1 they are not by --timeout, the
/// reasons are printed; 2 wrong use: nothing to run, or more than one thing to run. Without --once the
/// command stays until it is interrupted, and then exits with 0.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The repository: a folder, or an address that Git takes.
    #[arg(default_value = ".", value_name = "PATH_OR_GIT_URL")]
    pub place: String,
    /// Run this branch, tag or commit in place of the files as they are.
    #[arg(long, alias = "rev", value_name = "REV")]
    pub revision: Option<String>,
    /// One of several environments that stand side by side: its name, or the end of that.
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Look for Applications in this folder or file of the repository only.
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Take the commits that targetRevision names for this repository too, not the files as they are.
    #[arg(long)]
    pub respect_revisions: bool,
    /// Know no other destination cluster than the embedded one's own address.
    #[arg(long)]
    pub respect_destinations: bool,
    /// A file with clusters that ApplicationSets may select, beside those that the repository declares: their
    /// Secrets, or a YAML list of {name, server, labels, annotations}. The embedded cluster stands for each
    /// of them.
    #[arg(long, value_name = "FILE")]
    pub clusters: Option<PathBuf>,
    /// Sync Applications without an automated policy too, as a person would who presses the button: once for
    /// each revision, without pruning.
    #[arg(long)]
    pub sync_all: bool,
    /// What stands in for what nothing in reach brings: definitions of custom resources, namespaces,
    /// projects, classes of storage, runtimes and priorities, load balancers, nodes, issuers, Secrets and
    /// ConfigMaps that scripts or playbooks of the repository make. With `always` also those that pods name
    /// and people make by hand. With `never` waves also wait for Applications whose sources cannot be had.
    #[arg(long, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    pub stand_ins: When,
    /// How often a repository given by its address is asked for new commits.
    #[arg(long, default_value = "30s", value_parser = duration::parse, value_name = "DURATION")]
    pub poll: Duration,
    /// Fetch nothing: repositories other than this one fail.
    #[arg(long)]
    pub offline: bool,
    /// End once all Applications are Synced and Healthy, nothing moves any more, or --timeout has passed.
    #[arg(long)]
    pub once: bool,
    /// How long --once waits.
    #[arg(long, default_value = "10m", value_parser = duration::parse, value_name = "DURATION")]
    pub timeout: Duration,
    /// Address to serve the cluster's API on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Keep the cluster in this folder, and go on with it at the next start.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The Kubernetes minor version to be, such as 1.34.
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// Go by Argo CD's rules in place of Tiphys' safer ones: health of Applications counts only if a script
    /// gives them one, waits have no end, failed syncs are repeated as often as Argo CD does.
    #[arg(long)]
    pub argo_cd: bool,
    /// The range that Services get their addresses from; one of IPv4. If it is not given, it is the one that
    /// the fixed addresses in the repository's files are of, if they are all of one that a common
    /// distribution uses, and otherwise 10.96.0.0/16. A cluster that is kept with --state keeps its own.
    #[arg(long, value_name = "CIDR")]
    pub service_cluster_ip_range: Option<ServiceNetwork>,
    /// Write the kubeconfig into this file too; by default it is only in a folder of your own, below
    /// $XDG_STATE_HOME or ~/.local/state, where `tiphys app` run in the repository finds it.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Lines for people, or one JSON object a line for programs.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// How progress is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// One event a line.
    Json,
}
