//! What the kernel holds a worker to.

use std::{io, time::Duration};

/// Limits of one worker. Each is the kernel's: none depends on counting what a renderer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory that the worker may take, in bytes.
    pub memory: u64,
    /// Processor time that one rendering may take; whole seconds count, at least one.
    pub cpu: Duration,
}

impl Default for Limits {
    /// 1 GiB and 30 seconds. The largest chart that was measured, kube-prometheus-stack, takes a tenth of the
    /// memory and a hundredth of the time.
    fn default() -> Self {
        Self { memory: 1 << 30, cpu: Duration::from_secs(30) }
    }
}

impl Limits {
    /// Holds this process to the limits: memory, no files written, no core dump; on Linux besides, where the
    /// kernel has them, no files but those of time zones (Landlock), no network and no programs (seccomp).
    ///
    /// # Errors
    /// The kernel refuses a limit that it knows.
    pub(crate) fn enforce(&self) -> io::Result<()> {
        #[cfg(unix)]
        {
            use rustix::process::Resource;
            limit(Resource::Core, 0)?;
            limit(Resource::Fsize, 0)?;
            #[cfg(target_os = "linux")]
            limit(Resource::Data, self.memory)?;
            // Addresses are reserved for threads that never need the memory behind them.
            limit(Resource::As, self.memory.saturating_add(RESERVED))?;
        }
        #[cfg(target_os = "linux")]
        linux::enforce()?;
        Ok(())
    }

    /// Allows this process so many more seconds of processor time; beyond them the kernel ends it.
    pub(crate) fn allow_cpu(seconds: u64) -> io::Result<()> {
        #[cfg(unix)]
        {
            use rustix::{
                process::{Resource, Rlimit, getrlimit, setrlimit},
                time::{ClockId, clock_gettime},
            };
            let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default();
            let Rlimit { maximum, .. } = getrlimit(Resource::Cpu);
            let current = Some(used.saturating_add(seconds.max(1)).saturating_add(1));
            setrlimit(Resource::Cpu, Rlimit { current, maximum })?;
        }
        #[cfg(not(unix))]
        let _ = seconds;
        Ok(())
    }
}

/// How many addresses may be reserved beside the memory that may be taken, in bytes.
#[cfg(unix)]
const RESERVED: u64 = 2 << 30;

#[cfg(unix)]
fn limit(resource: rustix::process::Resource, most: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    // Where the parent has less already, that stays.
    let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
        path_beneath_rules,
    };

    /// What functions of templates read: the names of time zones.
    const READABLE: [&str; 2] = ["/usr/share/zoneinfo", "/etc/localtime"];

    pub(super) fn enforce() -> io::Result<()> {
        files().map_err(io::Error::other)?;
        calls()
    }

    /// No file is opened. A kernel without Landlock, or with an older one, does what it can.
    fn files() -> Result<(), RulesetError> {
        let abi = ABI::V5;
        Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(READABLE, AccessFs::from_read(abi)))?
            .restrict_self()?;
        Ok(())
    }

    /// Nobody is spoken to, no program is started, no other process is looked at: such calls fail.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn calls() -> io::Result<()> {
        use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
        const DENIED: [libc::c_long; 36] = [
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_open,
            libc::SYS_kill,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_open_by_handle_at,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_io_uring_setup,
            libc::SYS_memfd_create,
        ];
        // The numbers are `c_long`, which is narrower elsewhere.
        let rules = DENIED.into_iter().map(|call| (call, Vec::new())).collect();
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        seccompiler::apply_filter_all_threads(&program).map_err(io::Error::other)
    }

    /// No filter is known for this processor; the other limits hold.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn calls() -> io::Result<()> {
        Ok(())
    }
}
