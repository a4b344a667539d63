//! How names of hosts and users are looked up.

/// Makes glibc look names up in files and by DNS itself, whatever `nsswitch.conf` names besides: for a program that is linked
/// statically, where all else comes from shared libraries, and those of another glibc than the program's may end it. Before
/// any name is looked up; other C libraries have no such libraries, and nothing is done.
pub fn look_up_names_alone() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (database, services) in ALONE {
        configure(database, services);
    }
}

/// What glibc 2.34 and newer has in itself of each database that a program may ask.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ALONE: [(&std::ffi::CStr, &std::ffi::CStr); 4] =
    [(c"hosts", c"files dns"), (c"services", c"files"), (c"passwd", c"files"), (c"group", c"files")];

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "glibc has no other way to choose, but a file of the system's")]
fn configure(database: &std::ffi::CStr, services: &std::ffi::CStr) {
    unsafe extern "C" {
        fn __nss_configure_lookup(
            database: *const std::ffi::c_char,
            services: *const std::ffi::c_char,
        ) -> std::ffi::c_int;
    }
    // SAFETY: both are strings that end with a zero byte and outlive the call, which copies what it keeps and takes a lock of
    // its own. See glibc's nss.h.
    let failed = unsafe { __nss_configure_lookup(database.as_ptr(), services.as_ptr()) };
    debug_assert_eq!(failed, 0, "{database:?} is a database, {services:?} are services");
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs;

    #[test]
    fn names_of_hosts_are_still_found() {
        super::look_up_names_alone();
        let found = ("localhost", 80).to_socket_addrs().map(|mut found| found.next().is_some());
        assert!(found.is_ok_and(|found| found));
    }
}
