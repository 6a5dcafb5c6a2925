//! A picture of one red point, and a sound without samples: base64, as the protocol carries them.

pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
pub(crate) const PNG_TYPE: &str = "image/png";

pub(crate) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
pub(crate) const WAV_TYPE: &str = "audio/wav";
