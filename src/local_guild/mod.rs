//! A Discord-protocol server on loopback, with a web page.
