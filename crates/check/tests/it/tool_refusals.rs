//! What templates, modules of Terraform and playbooks hold that their programs refuse, each beside a good
//! one.

use crate::common::found;

#[test]
fn a_template_that_looks_for_the_values_in_a_value_is_told() {
    let of = |template: &str| {
        let helpers = "{{- define \"web.name\" -}}{{ .Chart.Name }}{{- end }}\n{{- define \"web.labels\" -}}\napp: {{ include \"web.name\" . }}\n{{- end }}\n{{- define \"web.item\" -}}{{ .name }}{{- end }}\n{{- define \"web.any\" -}}{{ if hasKey . \"Chart\" }}{{ .Chart.Name }}{{ end }}{{- end }}\n";
        found(
            "D2-lost-context",
            &[
                ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
                ("web/templates/_helpers.tpl", helpers),
                ("web/templates/a.yaml", template),
            ],
        )
    };
    assert_eq!(of("{{- with .Values.a }}\na: {{ toYaml .Values.a }}\n{{- end }}\n").len(), 1);
    assert_eq!(of("{{- with .Values.a }}\na: {{ include \"web.labels\" . }}\n{{- end }}\n").len(), 1);
    assert_eq!(
        of("{{- range $at, $one := .Values.a }}\na: {{ $.Chart.Name }}-{{ .Release.Name }}\n{{- end }}\n")
            .len(),
        1
    );
    // One finding for a block, however much it reads.
    assert_eq!(
        of(
            "{{- with .Values.a }}\na: {{ .Values.b.c }}{{ .Values.d }}\nb: {{ .Release.Name }}\n{{- end }}\n"
        )
        .len(),
        1
    );
    for good in [
        "{{- with .Values.a }}\na: {{ toYaml . }}\n{{- else }}\na: {{ .Values.b }}\n{{- end }}\nb: {{ .Values.c }}\n",
        "{{- with $ }}\na: {{ .Values.a }}\n{{- end }}\n",
        "{{- with dict \"Values\" .Values }}\na: {{ .Values.a }}\n{{- end }}\n",
        "{{- with .Values.a }}\na: {{ $.Values.a }} {{ include \"web.item\" . }} {{ include \"web.labels\" $ }} {{ \".Values.b\" }}\n{{- end }}\n",
        "{{- with .Values.a }}\na: {{ include \"web.any\" . }}\n{{/* .Values.b */}}\n{{- end }}\n",
        "{{- if .Values.a }}\na: {{ .Values.a }}\n{{- end }}\n",
    ] {
        assert!(of(good).is_empty(), "{good}");
    }
}

#[test]
fn an_alias_of_a_provider_that_a_module_does_not_know_is_told() {
    let of = |module: &str| found("G4-terraform-refused", &[("dns/main.tf", module)]);
    const RECORD: &str =
        "resource \"restapi_object\" \"a\" {\n  provider = restapi.dns\n  path     = \"/a\"\n}\n";
    assert_eq!(of(RECORD).len(), 1);
    let declared = "terraform {\n  required_providers {\n    restapi = {\n      source = \"mastercard/restapi\"\n      configuration_aliases = [restapi.dns]\n    }\n  }\n}\n";
    assert!(of(&format!("{declared}{RECORD}")).is_empty());
    assert!(of(&format!("provider \"restapi\" {{\n  alias = \"dns\"\n}}\n{RECORD}")).is_empty());
    assert!(of(&RECORD.replace("restapi.dns", "restapi")).is_empty());
    let module = format!("{declared}{RECORD}");
    let called = |more: &str| {
        let call = format!("module \"dns\" {{\n  source = \"./dns\"\n{more}}}\n");
        found("G4-terraform-refused", &[("main.tf", &call), ("dns/main.tf", &module)])
    };
    assert_eq!(called("").len(), 1);
    assert!(called("  providers = { restapi.dns = restapi }\n").is_empty());
}

#[test]
fn a_description_that_aws_does_not_take_is_told() {
    let of = |text: &str| {
        let group = format!("resource \"aws_security_group\" \"a\" {{\n  description = \"{text}\"\n}}\n");
        found("G4-terraform-refused", &[("main.tf", &group)])
    };
    assert_eq!(of("the API — from the VPC").len(), 1);
    assert!(of("the API - from ${var.cluster} (10.0.0.0/16)").is_empty());
    assert!(of("the API - from the VPC").is_empty());
}

#[test]
fn a_role_that_has_another_name_is_told() {
    let of = |role: &str| {
        let play = format!("- hosts: all\n  roles:\n    - {role}\n");
        found(
            "G2-ansible-refused",
            &[("site.yml", &play), ("roles/pxe-server/tasks/main.yml", "- name: a\n  command: b\n")],
        )
    };
    assert_eq!(of("pxe").len(), 1);
    assert!(of("pxe-server").is_empty());
    assert!(of("dns").is_empty());
}

#[test]
fn a_block_on_the_line_of_its_key_is_told() {
    let of = |block: &str| {
        let template = format!("spec:\n  imagePullSecrets:\n  {block}\n");
        found(
            "D2-template-indent",
            &[
                ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
                ("web/templates/pod.yaml", &template),
            ],
        )
    };
    assert_eq!(of("{{- toYaml .Values.pull | indent 4 }}").len(), 1);
    assert_eq!(of("{{- with .Values.pull }}\n  {{- . | toYaml | indent 4 }}\n  {{- end }}").len(), 1);
    assert!(of("{{- toYaml .Values.pull | nindent 4 }}").is_empty());
    assert!(of("{{ toYaml .Values.pull | indent 4 }}").is_empty());
    assert!(of("{{ with .Values.pull }}\n{{- . | toYaml | indent 4 }}\n  {{- end }}").is_empty());
}

#[test]
fn a_name_that_the_api_server_does_not_take_is_told_of_terraform() {
    let of = |kind: &str, name: &str| {
        let block = format!("resource \"{kind}\" \"a\" {{\n  metadata {{\n    name = \"{name}\"\n  }}\n}}\n");
        found("G4-terraform-refused", &[("main.tf", &block)])
    };
    assert_eq!(of("kubernetes_secret", "landing_bucket").len(), 1);
    assert!(of("kubernetes_secret", "landing-bucket").is_empty());
    assert!(of("kubernetes_secret", "${var.name}_a").is_empty());
    assert!(of("kubernetes_cluster_role", "system:a_b").is_empty());
}

#[test]
fn a_volume_of_a_workflow_that_has_another_name_is_told() {
    let of = |mount: &str| {
        let workflow = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: build}}\nspec:\n  entrypoint: main\n  volumeClaimTemplates: [{{metadata: {{name: work}}}}]\n  templates: [{{name: main, container: {{image: 'a:1', volumeMounts: [{{name: {mount}, mountPath: /w}}]}}}}]\n"
        );
        found("C2-undefined-name", &[("build.yaml", &workflow)])
    };
    assert_eq!(of("workdir").len(), 1);
    assert!(of("work").is_empty());
}

#[test]
fn a_key_that_an_external_secret_takes_from_two_places_is_told() {
    let of = |second: &str| {
        let secret = format!(
            "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: web}}\nspec:\n  secretStoreRef: {{kind: ClusterSecretStore, name: vault}}\n  data:\n    - {{secretKey: user, remoteRef: {{key: a}}}}\n    - {{secretKey: {second}, remoteRef: {{key: b}}}}\n"
        );
        found("C2-item-twice", &[("web.yaml", &secret)])
    };
    assert_eq!(of("user").len(), 1);
    assert!(of("password").is_empty());
}

#[test]
fn a_generated_object_that_nothing_names_beside_a_missing_one_is_told() {
    const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: cleanup}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: a, image: 'a:1', volumeMounts: [{name: scripts, mountPath: /s}]}]\n      volumes:\n        - name: scripts\n          configMap:\n            name: job-cleanup\n";
    let of = |name: &str| {
        let kustomization =
            format!("resources: [job.yaml]\nconfigMapGenerator: [{{name: {name}, files: [job.sh]}}]\n");
        let files = [("a/job.yaml", JOB), ("a/kustomization.yaml", &kustomization), ("a/job.sh", "echo\n")];
        found("E2-misspelt-name", &files)
    };
    assert_eq!(of("job-setup-machines").len(), 1);
    assert!(of("job-cleanup").is_empty());
}

#[test]
fn a_block_of_a_pod_takes_the_arguments_of_the_provider_alone() {
    let of = |volume: &str| {
        let module = format!(
            "resource \"kubernetes_deployment\" \"web\" {{\n  metadata {{\n    name = \"web\"\n  }}\n  spec {{\n    template {{\n      spec {{\n        volume {{\n{volume}\n        }}\n      }}\n    }}\n  }}\n}}\n"
        );
        found("G4-terraform-refused", &[("infra/main.tf", &module)]).len()
    };
    assert_eq!(of("host_path {\n name = \"data\"\n path = \"/srv\"\n}"), 1);
    assert_eq!(of("name = \"data\"\n host_path {\n path = \"/srv\"\n type = \"Directory\"\n}"), 0);
}

#[test]
fn a_release_of_terraform_is_given_each_value_once() {
    let of = |name: &str, value: &str| {
        let module = format!(
            "resource \"helm_release\" \"proxy\" {{\n  name  = \"proxy\"\n  chart = \"proxy\"\n  set {{\n    name  = \"plugins.block.moduleName\"\n    value = \"example.com/block\"\n  }}\n  set {{\n    name  = \"{name}\"\n    value = \"{value}\"\n  }}\n}}\n"
        );
        found("G4-terraform-refused", &[("infra/main.tf", &module)]).len()
    };
    assert_eq!(of("plugins.block.moduleName", "v0.2.8"), 1);
    assert_eq!(of("plugins.block.version", "v0.2.8"), 0);
    assert_eq!(of("plugins.block.moduleName", "example.com/block"), 0);
}
