//! The `taffrail` command.
fn main() {}
