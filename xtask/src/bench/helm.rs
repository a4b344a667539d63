//! `cargo xtask bench helm`: a tiny chart, one of 40 templates, and a real one if it is given.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::Context;
use tiphys_helm::{Chart, RenderOptions, ValuesSource, template};
use tiphys_vfs::DiskTree;

use super::{call, publish, ratio, table, take_turns};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The binary to measure, built with `cargo build --release -p tiphys-cli`.
    #[arg(long, default_value = "target/release/tiphys")]
    tiphys: PathBuf,
    /// Folders of further charts, such as kube-prometheus-stack.
    #[arg(long)]
    chart: Vec<PathBuf>,
    /// Counted runs of each program.
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Renderings in one process.
    #[arg(long, default_value_t = 1000)]
    many: u32,
}

const REPORT: &str = "docs/benchmarks/helm.md";

/// Measures and writes the report.
///
/// # Errors
/// A program is missing or fails, the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let helm = tiphys_oracles::find("helm")?;
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let folder = tempfile::tempdir()?;
    let mut charts = vec![
        ("1 template".to_owned(), write_chart(&folder.path().join("tiny"), 1)?),
        ("40 templates".to_owned(), write_chart(&folder.path().join("forty"), 40)?),
    ];
    for chart in &args.chart {
        let name = chart.file_name().unwrap_or_default().to_string_lossy().into_owned();
        charts.push((name, chart.canonicalize()?));
    }
    let mut report = String::from(
        "# Helm\n\nMade by `cargo xtask bench helm`. Whole processes in turn, medians; then renderings in one process, each \
         with other values.\n",
    );
    for (name, chart) in charts {
        let ours = || call(&tiphys, &["render", "helm", "release-name"], &chart);
        let real = || call(&helm, &["template", "release-name"], &chart);
        let measured = take_turns(args.runs, &[("tiphys", &ours), ("helm", &real)])?;
        let each = one_process(&chart, args.many)?;
        write!(report, "\n## {name}\n\n{}", table(&measured))?;
        writeln!(
            report,
            "\n{} renderings in one process{}: {:.3} ms each; `helm template` takes {:.0} times that.",
            args.many,
            if cfg!(debug_assertions) { " (not optimised)" } else { "" },
            each * 1e3,
            ratio(measured[1].wall(), each)
        )?;
    }
    publish(REPORT, &report)
}

/// Seconds for one rendering, when many are made in one process.
fn one_process(chart: &Path, many: u32) -> anyhow::Result<f64> {
    let chart = Chart::load(&DiskTree::open(chart)?, "")?;
    let start = Instant::now();
    for round in 0..many {
        let values = format!("fullnameOverride: name-{round}\n");
        let options = RenderOptions {
            release_name: "release-name".to_owned(),
            namespace: "default".to_owned(),
            values: vec![ValuesSource::File("values.yaml".to_owned(), Arc::from(values.into_bytes()))],
            ..RenderOptions::default()
        };
        template(&chart, &options)?;
    }
    Ok(start.elapsed().as_secs_f64() / f64::from(many))
}

const HELPERS: &str = r#"{{- define "web.name" -}}
{{- .Values.fullnameOverride | default (printf "%s-%s" .Release.Name .Chart.Name) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
"#;

const DEPLOYMENT: &str = r#"{{- if .Values.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.name" . }}-NUMBER
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels:
      {{- include "web.labels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "web.labels" . | nindent 8 }}
    spec:
      containers:
        - name: web
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
          {{- with .Values.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
          {{- range $port := .Values.ports }}
            - containerPort: {{ $port }}
          {{- end }}
{{- end }}
"#;

const VALUES: &str = "enabled: true\nreplicas: 2\nimage: {repository: nginx, tag: \"1.27\"}\nports: [80, 443]\nresources:\n  limits: {cpu: 100m, memory: 64Mi}\n";

/// Writes a chart of so many Deployments; its folder.
///
/// # Errors
/// It cannot be written.
fn write_chart(dir: &Path, templates: usize) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(dir.join("templates"))?;
    fs::write(dir.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"1\"\n")?;
    fs::write(dir.join("values.yaml"), VALUES)?;
    fs::write(dir.join("templates/_helpers.tpl"), HELPERS)?;
    for number in 0..templates {
        let text = DEPLOYMENT.replace("NUMBER", &number.to_string());
        fs::write(dir.join(format!("templates/deployment-{number}.yaml")), text)?;
    }
    Ok(dir.to_owned())
}
