//! Much of what is small by itself: Applications, objects of one name, keys, groups, parts of an output.

use super::repository::{CHART, Case, application, config_map};

/// The inputs.
pub(super) fn cases() -> Vec<Case> {
    vec![
        generated_applications(),
        applications_of_each_other(),
        affinities(),
        files_of_one_object(),
        repeated_keys("\n"),
        repeated_keys("\r"),
        security_groups(),
        nested_kustomization(),
        written_letters(),
        Case::new("count-replicas", [("w/x.yaml", replicas())]),
        Case::new("count-ports", [("w/x.yaml", ports())]),
    ]
}

/// One set that yields 30,000 Applications.
fn generated_applications() -> Case {
    let elements: Vec<String> = (0..30_000).map(|at| format!("{{name: n{at}}}")).collect();
    let set = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: s, namespace: argocd}}\nspec:\n  \
         generators: [{{list: {{elements: [{}]}}}}]\n  template:\n    metadata: {{name: \"{{{{name}}}}\"}}\n    spec:\n      \
         project: default\n      destination: {{server: \"https://kubernetes.default.svc\", namespace: shop}}\n      \
         source: {{repoURL: https://git.example.com/org/repo.git, path: w, targetRevision: HEAD}}\n",
        elements.join(", ")
    );
    Case::new("count-applications", [("apps/s.yaml", set), ("w/x.yaml", config_map("x"))])
}

/// Applications each of which renders all of them.
fn applications_of_each_other() -> Case {
    let all = (0..3_000).map(|at| application(&format!("r{at}"), "apps", "", "") + "---\n");
    Case::new("count-roots", [("apps/b.yaml", all.collect::<String>())])
}

/// 54 MB in which nearly every map has one entry.
fn affinities() -> Case {
    let term = |at: usize| {
        format!(
            "      - {{labelSelector: {{matchLabels: {{app: x{at}}}}}, topologyKey: kubernetes.io/hostname}}\n"
        )
    };
    let terms: String = (0..2_000).map(term).collect();
    let pod = |at: usize| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{at}}}\nspec:\n  containers: [{{name: c, image: x}}]\n  \
             affinity:\n    podAntiAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n{terms}"
        )
    };
    let file = |at: usize| (format!("w/p{at}.yaml"), (at * 10..at * 10 + 10).map(pod).collect::<String>());
    Case::new("count-affinities", (0..30).map(file))
}

fn files_of_one_object() -> Case {
    Case::new("count-files", (0..40_000).map(|at| (format!("w/m/{at}.yaml"), config_map("x"))))
}

/// One key, set again and again, with this between the lines.
fn repeated_keys(line_break: &str) -> Case {
    let name = if line_break == "\n" { "count-keys" } else { "count-keys-of-old-lines" };
    let text = config_map("x") + &format!("a: b{line_break}").repeat(200_000);
    Case::new(name, [("w/x.yaml", text)])
}

fn security_groups() -> Case {
    const GROUPS: usize = 3_000;
    let group = |at: usize| {
        let next = (at + 1) % GROUPS;
        format!(
            "resource \"aws_security_group\" \"s{at}\" {{\n  ingress {{\n    security_groups = [aws_security_group.s{next}.id]\n  }}\n}}\n"
        )
    };
    Case::new("count-groups", [("infra/main.tf", (0..GROUPS).map(group).collect::<String>())])
}

/// 18 MB, most of it blanks.
fn nested_kustomization() -> Case {
    let levels = (1..6_000).map(|level| format!("{}a:\n", " ".repeat(level)));
    let text = format!("resources: [x.yaml]\nlabels:\n{}", levels.collect::<String>());
    Case::new("count-levels", [("w/kustomization.yaml", text), ("w/x.yaml", config_map("x"))])
}

fn written_letters() -> Case {
    let template = config_map("{{ range until 20000 }}{{ range until 20000 }}x{{ end }}{{ end }}");
    Case::new(
        "count-letters",
        [
            ("w/Chart.yaml", CHART.to_owned()),
            ("w/values.yaml", String::new()),
            ("w/templates/c.yaml", template),
        ],
    )
}

fn replicas() -> String {
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  replicas: 2147483647\n  \
     selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    \
     spec: {containers: [{name: c, image: x}]}\n"
        .to_owned()
}

fn ports() -> String {
    let ports = (1..60_000).map(|at| format!("  - {{name: p{at}, port: {at}}}\n"));
    let head = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  selector: {a: b}\n  ports:\n";
    format!("{head}{}", ports.collect::<String>())
}
