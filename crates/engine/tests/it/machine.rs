//! Whole runs with real processes.

mod command;
mod ends;
mod harness;
mod runs;
mod stays;
