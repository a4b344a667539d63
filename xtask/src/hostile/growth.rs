//! How time and memory grow with the size of an input. What grows with the square of it is slow for somebody
//! soon.

use std::{path::Path, time::Duration};

use anyhow::bail;

use super::{
    is_meant,
    repository::{CHART, Case, application, config_map},
    start,
};

/// An input of a size.
struct Pattern {
    name: &'static str,
    /// The size to begin with; three doublings follow.
    first: usize,
    make: fn(usize) -> Vec<(String, String)>,
    command: &'static [&'static str],
}

const CHECK: &[&str] = &["check", "--offline"];
const HELM: &[&str] = &["render", "helm", "x", "w"];
const KUSTOMIZE: &[&str] = &["render", "kustomize", "w"];

/// Doublings after the first size.
const DOUBLINGS: usize = 3;
/// Where a doubling takes more than so many times what was taken before, growth is not linear.
const STEEP: f64 = 3.0;
/// Shorter runs say nothing about growth.
const SHORT: Duration = Duration::from_millis(300);

/// What a file of text in a chart, a kustomization or a folder may grow by.
const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "documents",
        first: 2000,
        make: |n| {
            manifests(&repeated(n, |at| {
                format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x{at}}}\n")
            }))
        },
        command: CHECK,
    },
    Pattern {
        name: "keys",
        first: 20_000,
        make: |n| manifests(&(config_map("x") + "d:\n" + &repeated(n, |at| format!("  k{at}: 1\n")))),
        command: CHECK,
    },
    Pattern {
        name: "comments",
        first: 50_000,
        make: |n| manifests(&(repeated(n, |at| format!("# {at}\n")) + &config_map("x"))),
        command: CHECK,
    },
    Pattern {
        name: "quotes",
        first: 500_000,
        make: |n| manifests(&config_map(&"\\\"".repeat(n))),
        command: CHECK,
    },
    Pattern {
        name: "folded",
        first: 50_000,
        make: |n| manifests(&(config_map("x") + "d: >\n" + &repeated(n, |at| format!("  {at}\n\n")))),
        command: CHECK,
    },
    Pattern {
        name: "anchors",
        first: 5000,
        make: |n| {
            manifests(&(config_map("x") + "d:\n" + &repeated(n, |at| format!("- &a{at} {at}\n- *a{at}\n"))))
        },
        command: CHECK,
    },
    Pattern {
        name: "files",
        first: 500,
        make: |n| {
            (0..n)
                .map(|at| {
                    (format!("w/f{at}.yaml"), config_map("x").replace("name: x", &format!("name: x{at}")))
                })
                .collect()
        },
        command: CHECK,
    },
    Pattern {
        name: "applications",
        first: 100,
        make: |n| {
            (0..n)
                .flat_map(|at| {
                    [
                        (
                            format!("apps/a{at}.yaml"),
                            application(&format!("a{at}"), &format!("w{at}"), "", ""),
                        ),
                        (format!("w{at}/x.yaml"), config_map("x")),
                    ]
                })
                .collect()
        },
        command: CHECK,
    },
    Pattern { name: "services", first: 250, make: |n| manifests(&repeated(n, workload)), command: CHECK },
    Pattern {
        name: "scripts",
        first: 2000,
        make: |n| {
            vec![(
                "run.sh".into(),
                format!("#!/bin/bash\n{}", repeated(n, |at| format!("kubectl apply -f w/x{at}.yaml\n"))),
            )]
        },
        command: CHECK,
    },
    Pattern {
        name: "dockerfile",
        first: 5000,
        make: |n| {
            vec![(
                "Dockerfile".into(),
                format!("FROM x\n{}", repeated(n, |at| format!("COPY a{at} /b{at}\n"))),
            )]
        },
        command: CHECK,
    },
    Pattern {
        name: "terraform",
        first: 1000,
        make: |n| {
            vec![(
                "main.tf".into(),
                repeated(n, |at| {
                    format!(
                        "resource \"aws_security_group\" \"g{at}\" {{\n  name = local.n{at}\n}}\nlocals {{\n  n{at} = \"x{at}\"\n}}\n"
                    )
                }),
            )]
        },
        command: CHECK,
    },
    Pattern {
        name: "playbook",
        first: 1000,
        make: |n| {
            vec![(
                "playbook.yml".into(),
                format!(
                    "- hosts: all\n  tasks:\n{}",
                    repeated(n, |at| format!(
                        "  - shell: kubectl apply -f w/x{at}.yaml\n    register: r{at}\n"
                    ))
                ),
            )]
        },
        command: CHECK,
    },
    Pattern {
        name: "workflow",
        first: 500,
        make: |n| {
            vec![(
                ".github/workflows/a.yml".into(),
                format!(
                    "on: push\njobs:\n{}",
                    repeated(n, |at| format!(
                        "  j{at}:\n    runs-on: x\n    steps:\n    - run: echo ${{{{ github.ref }}}}\n"
                    ))
                ),
            )]
        },
        command: CHECK,
    },
    Pattern {
        name: "template-actions",
        first: 5000,
        make: |n| {
            chart(&format!(
                "{}data:\n{}",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
                repeated(n, |at| format!("  k{at}: {{{{ .Values.a | quote }}}}\n"))
            ))
        },
        command: HELM,
    },
    Pattern {
        name: "template-text",
        first: 500_000,
        make: |n| chart(&config_map(&"x{{/* */}}".repeat(n / 10))),
        command: HELM,
    },
    Pattern {
        name: "template-files",
        first: 500,
        make: |n| {
            let mut files = chart(&config_map("x"));
            files.extend((0..n).map(|at| {
                (
                    format!("w/templates/t{at}.yaml"),
                    config_map("x").replace("name: x", &format!("name: x{at}")),
                )
            }));
            files
        },
        command: HELM,
    },
    Pattern {
        name: "values",
        first: 20_000,
        make: |n| {
            let mut files = chart(&config_map("{{ .Values.k1 }}"));
            files.push(("w/values.yaml".into(), repeated(n, |at| format!("k{at}: {at}\n"))));
            files
        },
        command: HELM,
    },
    Pattern {
        name: "resources",
        first: 500,
        make: |n| {
            let mut files: Vec<(String, String)> = (0..n)
                .map(|at| {
                    (format!("w/x{at}.yaml"), config_map("x").replace("name: x", &format!("name: x{at}")))
                })
                .collect();
            files.push((
                "w/kustomization.yaml".into(),
                format!("namePrefix: p-\nresources:\n{}", repeated(n, |at| format!("- x{at}.yaml\n"))),
            ));
            files
        },
        command: KUSTOMIZE,
    },
    Pattern {
        name: "patches",
        first: 250,
        make: |n| {
            vec![
                ("w/x.yaml".into(), config_map("x")),
                (
                    "w/kustomization.yaml".into(),
                    format!(
                        "resources: [x.yaml]\npatches:\n{}",
                        repeated(n, |at| format!(
                            "- patch: '[{{\"op\":\"add\",\"path\":\"/data/k\",\"value\":\"{at}\"}}]'\n  target: {{kind: ConfigMap}}\n"
                        ))
                    ),
                ),
            ]
        },
        command: KUSTOMIZE,
    },
    Pattern {
        name: "generated",
        first: 5000,
        make: |n| {
            vec![(
                "w/kustomization.yaml".into(),
                format!(
                    "configMapGenerator:\n- name: x\n  literals:\n{}",
                    repeated(n, |at| format!("  - k{at}={at}\n"))
                ),
            )]
        },
        command: KUSTOMIZE,
    },
];

/// Measures every pattern, and prints a table.
///
/// # Errors
/// One grows faster than its input.
pub(super) fn run(program: &Path, only: &[String]) -> anyhow::Result<()> {
    println!("{:<18}{:>9}{:>9}{:>9}{:>9}{:>8}{:>10}", "pattern", "size", "s", "s", "s", "times", "MiB");
    let mut steep = Vec::new();
    for pattern in PATTERNS.iter().filter(|pattern| is_meant(pattern.name, only)) {
        let mut times = Vec::new();
        let mut memory = 0;
        for doubling in 0..=DOUBLINGS {
            let case = Case::new(pattern.name, (pattern.make)(pattern.first << doubling));
            let run = start(program, pattern.command, case.write()?.path())?;
            times.push(run.time);
            memory = run.memory >> 10;
        }
        let [.., second, third, last] = times[..] else { continue };
        let times_more = last.as_secs_f64() / third.as_secs_f64();
        let is_steep = times_more > STEEP && last > SHORT;
        println!(
            "{:<18}{:>9}{:>9.2}{:>9.2}{:>9.2}{:>8.1}{:>10}{}",
            pattern.name,
            pattern.first << DOUBLINGS,
            second.as_secs_f64(),
            third.as_secs_f64(),
            last.as_secs_f64(),
            times_more,
            memory,
            if is_steep { "  STEEP" } else { "" }
        );
        if is_steep {
            steep.push(pattern.name);
        }
    }
    if !steep.is_empty() {
        bail!("time grows faster than the input: {}", steep.join(", "));
    }
    Ok(())
}

fn repeated(count: usize, each: impl Fn(usize) -> String) -> String {
    (0..count).map(each).collect()
}

fn manifests(text: &str) -> Vec<(String, String)> {
    vec![("w/x.yaml".into(), text.to_owned())]
}

fn chart(template: &str) -> Vec<(String, String)> {
    vec![("w/Chart.yaml".into(), CHART.to_owned()), ("w/templates/c.yaml".into(), template.to_owned())]
}

/// A Deployment and its Service.
fn workload(at: usize) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w{at}, namespace: shop}}\nspec:\n  selector: {{matchLabels: \
         {{app: w{at}}}}}\n  template:\n    metadata: {{labels: {{app: w{at}}}}}\n    spec:\n      containers:\n      - name: c\n        \
         image: example.com/w{at}:1\n        env: [{{name: NEXT, value: \"http://w{next}.shop:80\"}}]\n---\napiVersion: v1\nkind: Service\n\
         metadata: {{name: w{at}, namespace: shop}}\nspec: {{selector: {{app: w{at}}}, ports: [{{port: 80}}]}}\n",
        next = at.saturating_sub(1)
    )
}
