//! Prints what the other tools of a folder write to the cluster: `cargo run -p tiphys-graph --example writers
//! -- DIR`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::{error::Error, sync::Arc};

use tiphys_graph::{Files, tools::Tools};
use tiphys_vfs::DiskTree;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    let files = Files::list(Arc::new(DiskTree::open(&folder)?), "");
    let tools = Tools::from_files(&files);
    for writer in &tools.writers {
        let namespace = writer.namespace.as_deref().unwrap_or("-");
        let component = writer.component().map_or("-", |component| component.name);
        let (tool, action, subject) = (writer.tool.name(), writer.action, writer.subject());
        println!("{}: {tool} {action:?} {subject} in {namespace} ({component})", writer.span);
    }
    println!("{} Ansible files, {} Terraform files", tools.ansible.files.len(), tools.terraform.files.len());
    for unreadable in &tools.terraform.unreadable {
        println!("{}: {}", unreadable.span, unreadable.message);
    }
    Ok(())
}
