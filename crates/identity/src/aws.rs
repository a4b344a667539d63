//! Roles and users of AWS, towards clusters of EKS (aws-iam-authenticator, "API Authorization from Outside a
//! Cluster"; Argo CD documentation, "Declarative Setup", "EKS").

use std::time::{Duration, SystemTime};

use aws_config::{BehaviorVersion, Region, SdkConfig, sts::AssumeRoleProvider};
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials as _, error::CredentialsError},
};
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign},
    sign::v4,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use tiphys_diag::chain;

use crate::{IdentityError, Token};

/// What a token begins with.
const PREFIX: &str = "k8s-aws-v1.";
/// The header that binds a token to one cluster.
const CLUSTER_HEADER: &str = "x-k8s-aws-id";
/// EKS takes no request that says more.
const EXPIRES_IN: Duration = Duration::from_secs(60);
/// A signed request is taken for a quarter of an hour, whatever it says; one minute is kept back.
const GOOD_FOR: Duration = Duration::from_secs(14 * 60);
/// What is signed: who has the credentials.
const QUESTION: &str = "Action=GetCallerIdentity&Version=2011-06-15";
/// The name of sessions of a role.
const SESSION: &str = "tiphys";
/// The region that is asked where none is said.
const UNSAID: &str = "us-east-1";
/// How addresses end, by how the names of their regions begin.
const PARTITIONS: [(&str, &str); 5] = [
    ("cn-", "amazonaws.com.cn"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("us-isof-", "csp.hci.ic.gov"),
    ("us-iso-", "c2s.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk"),
];

/// Who asks for a cluster of EKS: the credentials of this process, or of a role that they may assume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aws {
    /// The name of the cluster.
    pub cluster: String,
    /// `roleARN`: the role that is assumed.
    pub role: Option<String>,
    /// `profile` of the configuration files.
    pub profile: Option<String>,
    /// The region whose service is asked, in place of the environment's.
    pub region: Option<String>,
}

impl Aws {
    pub(crate) fn token(&self) -> Result<Token, IdentityError> {
        // The SDK needs a runtime; a token is asked for four times an hour.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| IdentityError(error.to_string()))?;
        let (credentials, region) =
            runtime.block_on(self.credentials()).map_err(|error| IdentityError(chain(&error)))?;
        let text =
            presigned(&self.cluster, &region, credentials, SystemTime::now()).map_err(IdentityError)?;
        Ok(Token::good_for(&text, GOOD_FOR))
    }

    async fn credentials(&self) -> Result<(Credentials, String), CredentialsError> {
        let (config, region) = self.config().await;
        let credentials = match (&self.role, config.credentials_provider()) {
            (Some(role), _) => {
                let assumed = AssumeRoleProvider::builder(role).configure(&config).session_name(SESSION);
                assumed.build().await.provide_credentials().await?
            }
            (None, Some(own)) => own.provide_credentials().await?,
            (None, None) => return Err(CredentialsError::not_loaded("there are no credentials")),
        };
        Ok((credentials, region))
    }

    /// What the environment says, and the region that is asked: a role cannot be assumed without one.
    async fn config(&self) -> (SdkConfig, String) {
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        let config = loader.load().await;
        let region = config.region().map_or(UNSAID, |region| region.as_ref()).to_owned();
        (config.into_builder().region(Region::new(region.clone())).build(), region)
    }
}

/// The token: the signed address by which EKS asks who signed it.
fn presigned(
    cluster: &str,
    region: &str,
    credentials: Credentials,
    now: SystemTime,
) -> Result<String, String> {
    let suffix = PARTITIONS.iter().find(|(prefix, _)| region.starts_with(prefix));
    let suffix = suffix.map_or("amazonaws.com", |(_, suffix)| suffix);
    let url = format!("https://sts.{region}.{suffix}/?{QUESTION}");
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(EXPIRES_IN);
    let identity = credentials.into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("sts")
        .time(now)
        .settings(settings)
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let headers = [(CLUSTER_HEADER, cluster)].into_iter();
    let request = SignableRequest::new("GET", &url, headers, SignableBody::Bytes(&[]));
    let request = request.map_err(|error| chain(&error))?;
    let (instructions, _) = sign(request, &params).map_err(|error| chain(&error))?.into_parts();
    let mut signed = http::Request::get(&url).body(()).map_err(|error| error.to_string())?;
    instructions.apply_to_request_http1x(&mut signed);
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(signed.uri().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What botocore signs for the same credentials at the same time (`SigV4QueryAuth`).
    #[test]
    fn a_request_is_signed_as_by_the_tools_of_aws() {
        let signed = |session: Option<&str>| {
            let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
            let credentials =
                Credentials::new("AKIDEXAMPLE", secret, session.map(str::to_owned), None, "test");
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
            let token = presigned("shop", "eu-central-1", credentials, now).expect("is signed");
            let encoded = token.strip_prefix(PREFIX).expect("begins so");
            let url = URL_SAFE_NO_PAD.decode(encoded).expect("is base64");
            String::from_utf8(url).expect("is text")
        };
        let beginning = "https://sts.eu-central-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15\
            &X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Feu-central-1%2Fsts%2Faws4_request\
            &X-Amz-Date=20260102T030405Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id";
        let signature = "4f92dafcde9e18995e3e64325ef2ab31ebde5c196dd7975ab88f891ff8ee2db6";
        assert_eq!(signed(None), format!("{beginning}&X-Amz-Signature={signature}"));
        // Parameters have no order.
        let signature = "222802bc0fbc6e6029593e8c693da6f1cdc01f868d7020fec25b96b1a7f7e974";
        let session = "FwoGZXIvYXdzEXAMPLE%2B%2F%3D";
        assert_eq!(
            signed(Some("FwoGZXIvYXdzEXAMPLE+/=")),
            format!("{beginning}&X-Amz-Signature={signature}&X-Amz-Security-Token={session}")
        );
    }
}
