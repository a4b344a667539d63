//! Programs that a client would run for a token, read as what they stand for (Kubernetes documentation,
//! "client-go credential plugins").

use std::collections::BTreeMap;

use crate::{Aws, Azure, AzureLogin, Google, Identity, IdentityError};

/// The application that all clusters of AKS are (AKS documentation, "Use kubelogin to authenticate users").
const AKS: &str = "6dae42f8-4368-4678-94ff-3960e28e3630";

/// The identity that a known program proves when it is run with these arguments and variables; `None` if the
/// program is not known.
///
/// # Errors
/// An argument or variable asks for what is not supported.
pub fn of_exec(
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
) -> Option<Result<Identity, IdentityError>> {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let read = match (name.strip_suffix(".exe").unwrap_or(name), words.as_slice()) {
        ("argocd-k8s-auth", ["aws", rest @ ..]) => aws(rest, env),
        ("argocd-k8s-auth", ["gcp", rest @ ..]) => google(rest, env),
        ("argocd-k8s-auth", ["azure", rest @ ..]) => azure(rest, env),
        ("aws", _) => aws_of_cli(&words, env)?,
        ("aws-iam-authenticator", ["token", rest @ ..]) => aws(rest, env),
        ("gke-gcloud-auth-plugin", rest) => google(rest, env),
        ("kubelogin", ["get-token", rest @ ..]) if !rest.iter().any(|word| word.starts_with("--oidc")) => {
            azure(rest, env)
        }
        _ => return None,
    };
    Some(read.map_err(|reason| IdentityError(format!("{name}: {reason}"))))
}

/// `aws [--region R] [--profile P] eks get-token …`.
fn aws_of_cli(words: &[&str], env: &BTreeMap<String, String>) -> Option<Result<Identity, String>> {
    let at = words.windows(2).position(|pair| pair == ["eks", "get-token"])?;
    let rest: Vec<&str> = words[..at].iter().chain(&words[at + 2..]).copied().collect();
    Some(aws(&rest, env))
}

fn aws(words: &[&str], env: &BTreeMap<String, String>) -> Result<Identity, String> {
    let mut aws = Aws::default();
    for (name, value) in env {
        match name.as_str() {
            "AWS_PROFILE" => aws.profile = Some(value.clone()),
            "AWS_REGION" | "AWS_DEFAULT_REGION" => aws.region = Some(value.clone()),
            "AWS_STS_REGIONAL_ENDPOINTS" => {}
            _ => return Err(format!("the variable {name} is not supported for one cluster")),
        }
    }
    for (flag, value) in flags(words, &[])? {
        match flag {
            "cluster-name" | "cluster-id" | "i" => aws.cluster = value,
            "role-arn" | "role" | "r" => aws.role = Some(value).filter(|role| !role.is_empty()),
            "profile" => aws.profile = Some(value).filter(|profile| !profile.is_empty()),
            "region" => aws.region = Some(value),
            // How the program prints what it has.
            "output" => {}
            _ => return Err(unsupported(flag)),
        }
    }
    if aws.cluster.is_empty() {
        Err("the name of the cluster is not said".into())
    } else {
        Ok(Identity::Aws(aws))
    }
}

fn google(words: &[&str], env: &BTreeMap<String, String>) -> Result<Identity, String> {
    let only = "use_application_default_credentials";
    if let Some((flag, _)) = flags(words, &[only])?.into_iter().find(|(flag, _)| *flag != only) {
        return Err(unsupported(flag));
    }
    let mut file = None;
    for (name, value) in env {
        match name.as_str() {
            "GOOGLE_APPLICATION_CREDENTIALS" => file = Some(value.into()),
            "USE_GKE_GCLOUD_AUTH_PLUGIN" => {}
            _ => return Err(format!("the variable {name} is not supported for one cluster")),
        }
    }
    Ok(Identity::Google(Google::Default(file)))
}

fn azure(words: &[&str], env: &BTreeMap<String, String>) -> Result<Identity, String> {
    let flags: BTreeMap<&str, String> = flags(words, &[])?.into_iter().collect();
    let known = [
        "login",
        "l",
        "server-id",
        "client-id",
        "client-secret",
        "tenant-id",
        "t",
        "environment",
        "e",
        "federated-token-file",
        "authority-host",
    ];
    if let Some(flag) = flags.keys().find(|flag| !known.contains(flag)) {
        return Err(unsupported(flag));
    }
    // A program inherits the variables of the process, those of its own first.
    let given = |names: &[&str], variables: &[&str]| {
        let said = names.iter().find_map(|name| flags.get(name).cloned());
        let own = || variables.iter().find_map(|name| env.get(*name).cloned());
        let inherited = || variables.iter().find_map(|name| std::env::var(name).ok());
        said.or_else(own).or_else(inherited).filter(|text| !text.is_empty())
    };
    if given(&[], &["AAD_IS_POP_TOKEN_ENABLED"]).is_some_and(|on| on != "false") {
        return Err("tokens with proof of possession are not supported".into());
    }
    let client_variables = ["AAD_SERVICE_PRINCIPAL_CLIENT_ID", "AZURE_CLIENT_ID"];
    let secret_variables = ["AAD_SERVICE_PRINCIPAL_CLIENT_SECRET", "AZURE_CLIENT_SECRET"];
    let wanted = given(&["login", "l"], &["AAD_LOGIN_METHOD"]);
    let login = match wanted.as_deref().unwrap_or("workloadidentity") {
        "spn" => AzureLogin::Secret(
            given(&["client-secret"], &secret_variables)
                .ok_or("an application proves itself by its secret only, and none is given")?,
        ),
        "workloadidentity" => AzureLogin::TokenFile(
            given(&["federated-token-file"], &["AZURE_FEDERATED_TOKEN_FILE"])
                .ok_or("AZURE_FEDERATED_TOKEN_FILE, the file with the workload's token, is not named")?
                .into(),
        ),
        "msi" => AzureLogin::Managed,
        other => return Err(format!("the login method {other:?} is not supported")),
    };
    let environment = given(&["environment", "e"], &["AAD_ENVIRONMENT_NAME"]);
    let authority = match (&login, given(&["authority-host"], &["AZURE_AUTHORITY_HOST"]), environment) {
        (AzureLogin::Managed, _, _) => given(&[], &["AZURE_POD_IDENTITY_AUTHORITY_HOST"]),
        (_, Some(authority), _) => Some(authority),
        (_, None, Some(name)) => {
            let known =
                Azure::authority_of(&name).ok_or_else(|| format!("the cloud {name:?} is not known"))?;
            Some(known.to_owned())
        }
        (_, None, None) => None,
    };
    Ok(Identity::Azure(Azure {
        login,
        tenant: given(&["tenant-id", "t"], &["AZURE_TENANT_ID"]).unwrap_or_default(),
        client: given(&["client-id"], &client_variables).unwrap_or_default(),
        authority,
        resource: given(&["server-id"], &["AAD_SERVER_APPLICATION_ID"]).unwrap_or_else(|| AKS.to_owned()),
    }))
}

/// `--name value`, `--name=value`, `-n value`; those of `switches` have no value of their own.
fn flags<'a>(words: &[&'a str], switches: &[&str]) -> Result<Vec<(&'a str, String)>, String> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        let name = name.ok_or_else(|| format!("the argument {word:?} is not supported"))?;
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None if switches.contains(&name) => (name, String::new()),
            None => {
                (name, (*words.next().ok_or_else(|| format!("the flag {word} has no value"))?).to_owned())
            }
        };
        found.push((name, value));
    }
    Ok(found)
}

fn unsupported(flag: &str) -> String {
    format!("the flag {flag} is not supported")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn read(line: &str, env: &[(&str, &str)]) -> Option<Result<Identity, String>> {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().expect("is a command");
        let args: Vec<String> = words.collect();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        of_exec(&command, &args, &env).map(|read| read.map_err(|error| error.0))
    }

    #[test]
    fn clusters_of_aws_are_named_by_each_of_its_programs() {
        let shop = |role: Option<&str>, region: Option<&str>| {
            let (role, region) = (role.map(str::to_owned), region.map(str::to_owned));
            Some(Ok(Identity::Aws(Aws { cluster: "shop".into(), role, profile: None, region })))
        };
        let line = "argocd-k8s-auth aws --cluster-name shop --role-arn arn:r";
        assert_eq!(read(line, &[]), shop(Some("arn:r"), None));
        let line = "/usr/local/bin/aws --region eu-west-1 eks get-token --cluster-name shop --output json";
        assert_eq!(read(line, &[]), shop(None, Some("eu-west-1")));
        let line = "aws eks get-token --cluster-name=shop --role=arn:r";
        assert_eq!(read(line, &[("AWS_REGION", "eu-west-1")]), shop(Some("arn:r"), Some("eu-west-1")));
        let line = "aws-iam-authenticator token -i shop -r arn:r";
        assert_eq!(read(line, &[]), shop(Some("arn:r"), None));
        let refused =
            |line: &str, env: &[(&str, &str)]| read(line, env).expect("is known").expect_err("is refused");
        assert_eq!(
            refused("argocd-k8s-auth aws", &[]),
            "argocd-k8s-auth: the name of the cluster is not said"
        );
        let line = "aws eks get-token --cluster-name shop --endpoint-url x";
        assert_eq!(refused(line, &[]), "aws: the flag endpoint-url is not supported");
        let line = "aws eks get-token --cluster-name shop";
        let reason = "aws: the variable AWS_ACCESS_KEY_ID is not supported for one cluster";
        assert_eq!(refused(line, &[("AWS_ACCESS_KEY_ID", "x")]), reason);
    }

    #[test]
    fn programs_of_google_stand_for_the_credentials_of_the_process() {
        let own = Some(Ok(Identity::Google(Google::Default(None))));
        assert_eq!(read("argocd-k8s-auth gcp", &[]), own);
        assert_eq!(read("gke-gcloud-auth-plugin --use_application_default_credentials", &[]), own);
        let file = Some(Ok(Identity::Google(Google::Default(Some("/key.json".into())))));
        assert_eq!(read("argocd-k8s-auth gcp", &[("GOOGLE_APPLICATION_CREDENTIALS", "/key.json")]), file);
    }

    #[test]
    fn logins_of_azure_are_read_from_flags_and_variables() {
        let azure = |line: &str, env: &[(&str, &str)]| match read(line, env) {
            Some(Ok(Identity::Azure(azure))) => azure,
            other => panic!("{other:?}"),
        };
        let workload = [
            ("AAD_ENVIRONMENT_NAME", "AzureChinaCloud"),
            ("AZURE_CLIENT_ID", "tiphys"),
            ("AZURE_TENANT_ID", "acme"),
            ("AZURE_FEDERATED_TOKEN_FILE", "/token"),
        ];
        let expected = Azure {
            login: AzureLogin::TokenFile(PathBuf::from("/token")),
            tenant: "acme".into(),
            client: "tiphys".into(),
            authority: Some("https://login.chinacloudapi.cn".into()),
            resource: AKS.into(),
        };
        assert_eq!(azure("argocd-k8s-auth azure", &workload), expected);
        let line = "kubelogin get-token --login spn --server-id s --client-id c --client-secret p -t t";
        let spn = azure(line, &[]);
        assert_eq!((spn.login, spn.resource.as_str()), (AzureLogin::Secret("p".into()), "s"));
        assert_eq!(azure("argocd-k8s-auth azure", &[("AAD_LOGIN_METHOD", "msi")]).login, AzureLogin::Managed);
        let refused = read("kubelogin get-token --login devicecode", &[]).expect("is known");
        assert_eq!(
            refused.expect_err("is refused"),
            "kubelogin: the login method \"devicecode\" is not supported"
        );
    }

    #[test]
    fn other_programs_are_not_known() {
        for line in
            ["vault login", "aws sts get-caller-identity", "kubelogin get-token --oidc-issuer-url=x", "aws"]
        {
            assert_eq!(read(line, &[]), None, "{line}");
        }
    }
}
