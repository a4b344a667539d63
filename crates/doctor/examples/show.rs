fn main() {
    for folder in std::env::args().skip(1) {
        let case = tiphys_doctor::Case::read(&[folder.into()]).unwrap();
        println!("now {:?}", case.now());
        for o in &case.objects {
            println!("{o}");
        }
        for e in &case.events {
            println!("{e:?}");
        }
    }
}
