//! Shared test helpers of the Taffrail workspace
