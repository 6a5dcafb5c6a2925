//! Real processes: awkward programs, their ends, and what they may leave behind.

mod capture;
mod endings;
mod guard;
mod harness;
