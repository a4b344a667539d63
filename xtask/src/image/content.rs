//! The files of the image: what a static program needs of a system, and the program.

use super::USER;
use crate::release::archive::Entries;

/// Where the program is.
pub(super) const PROGRAM: &str = "usr/bin/tiphys";
/// The home folder of the user.
pub(super) const HOME: &str = "home/nonroot";

/// What stays the same from release to release: names of users, authorities, folders to write into.
pub(super) fn base_files(certificates: &[u8]) -> Entries {
    let mut files = Entries::default();
    for folder in ["etc", "etc/ssl", "etc/ssl/certs", "home", "usr", "usr/bin", "licenses"] {
        files.add_folder(folder, 0o755, 0);
    }
    files.add_folder("tmp", 0o1777, 0);
    files.add_folder(HOME, 0o700, u64::from(USER));
    let user = format!("nonroot:x:{USER}:{USER}:nonroot:/{HOME}:/sbin/nologin\n");
    files.add_file("etc/passwd", 0o644, format!("root:x:0:0:root:/root:/sbin/nologin\n{user}"));
    files.add_file("etc/group", 0o644, format!("root:x:0:\nnonroot:x:{USER}:\n"));
    // Without it some resolvers ask for names of services only.
    files.add_file("etc/nsswitch.conf", 0o644, "hosts: files dns\n");
    files.add_file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates);
    files
}

/// The program and its licence.
pub(super) fn program_files(program: &[u8], license: &[u8]) -> Entries {
    let mut files = Entries::default();
    files.add_file(PROGRAM, 0o755, program);
    files.add_file("licenses/LICENSE", 0o644, license);
    files
}
