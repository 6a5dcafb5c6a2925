//! Playbooks: parse, check and run them, with every step as an event

pub mod playbook;
pub mod process;
