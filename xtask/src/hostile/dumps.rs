//! Saved states of clusters, as `doctor --from` and `rehearse --from` are given them.

use std::io::Write as _;

use super::repository::{Case, Special, config_map};

/// A pod that is ill, so that there is something to look at.
const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}, "status": {"phase": "Pending"}}"#;
/// What a name may hold at worst.
const NAME: &str = r"x\u001b[31m\u202e\n::error::x <script>?#%/";

/// The inputs.
pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, file: &str, content: Vec<u8>| {
        let files = [
            ("w/x.yaml".to_owned(), config_map("x").into_bytes()),
            ("d/pod.json".to_owned(), POD.as_bytes().to_vec()),
            (format!("d/{file}"), content),
        ];
        Case::new(&format!("dump-{name}"), files)
    };
    let list = |items: &str, count: usize| format!("{{\"items\": [{}1]}}", items.repeat(count)).into_bytes();
    let nested = "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[".repeat(50_000);
    let definition = format!(
        "{{\"apiVersion\": \"apiextensions.k8s.io/v1\", \"kind\": \"CustomResourceDefinition\", \"metadata\": {{\"name\": \"{NAME}\"}}, \
         \"spec\": {{\"group\": \"{NAME}\", \"scope\": \"Namespaced\", \"names\": {{\"kind\": \"X\", \"plural\": \"{NAME}\"}}, \
         \"versions\": [{{\"name\": \"v1\", \"served\": true, \"storage\": true}}]}}}}"
    );
    let owned = |at: usize| {
        POD.replace("\"name\": \"p\"", &format!("\"name\": \"p{at}\", \"ownerReferences\": [{{\"kind\": \"Pod\", \"name\": \"p{}\", \"controller\": true}}]", (at + 1) % 500))
    };
    let mut circle = (0..500).map(owned).collect::<Vec<_>>().join("\n");
    circle.push('\n');
    vec![
        case("dense", "x.json", list("{},", 15_000_000)),
        case("arrays", "x.json", list("[],", 15_000_000)),
        case("small", "x.json", list("{\"a\":{\"b\":1}},", 3_000_000)),
        case("nested", "x.json", nested.into_bytes()),
        case("packed", "x.json.gz", packed(b"[],", 100_000_000)),
        case("definition", "x.json", definition.into_bytes()),
        case("owners", "x.json", circle.into_bytes()),
        case("names", "x.json", POD.replace("\"p\"", &format!("\"{NAME}\"")).into_bytes()),
        case("log", "logs/shop_p_c.log", "error: [{(\"'=: http://".repeat(100_000).into_bytes()),
        // What stands beside the folder tells when the state was saved.
        case("time", "x.json", POD.into()).with("dump-time", Special::Device("now")),
    ]
}

/// So many times a piece, packed.
fn packed(piece: &[u8], count: usize) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let many = piece.repeat(10_000);
    for _ in 0..count / 10_000 {
        packer.write_all(&many).expect("memory takes it");
    }
    packer.finish().expect("memory takes it")
}
