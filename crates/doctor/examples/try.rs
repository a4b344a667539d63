fn main() {
    for folder in std::env::args().skip(1) {
        let line = match tiphys_doctor::Case::read(&[folder.clone().into()]) {
            Ok(case) => {
                let left: Vec<String> =
                    case.unreadable.iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
                serde_json::json!({"folder": folder, "diagnosis": tiphys_doctor::diagnose(&case), "left": left})
            }
            Err(error) => serde_json::json!({"folder": folder, "error": error.to_string()}),
        };
        println!("{line}");
    }
}
