//! The machine in a simulated world.

mod ask;
mod fan;
mod flow;
mod nested;
mod properties;
mod round_trip;
mod sim;
mod stopping;
