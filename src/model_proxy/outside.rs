//! What lies beyond the models: hosts that an agent may reach through the proxy, by `CONNECT` and not
//! otherwise.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use tokio::net::{TcpStream, lookup_host};

/// Ports of what is public.
const PORTS: [u16; 2] = [80, 443];

/// What a proxy leads to beside models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedHosts {
    /// Nothing.
    #[default]
    Nothing,
    /// These hosts: a name means its port 443; a name with a dot before it all names below; `host:port` that
    /// port.
    Hosts(Vec<String>),
    /// Whatever is public; neither this machine nor its neighbours.
    Public,
}

impl AllowedHosts {
    /// Whether it leads anywhere.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            AllowedHosts::Nothing => false,
            AllowedHosts::Hosts(hosts) => !hosts.is_empty(),
            AllowedHosts::Public => true,
        }
    }

    fn names(&self, host: &str, port: u16) -> bool {
        match self {
            AllowedHosts::Nothing => false,
            AllowedHosts::Public => PORTS.contains(&port),
            AllowedHosts::Hosts(hosts) => hosts.iter().any(|entry| {
                let address = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>().ok();
                let (name, wanted) = match entry.rsplit_once(':') {
                    Some((name, number)) if address(entry).is_none() => (name, number.parse().ok()),
                    Some(_) | None => (entry.as_str(), Some(443)),
                };
                let fits = match (address(name), name.strip_prefix('.')) {
                    (Some(address), _) => host.parse() == Ok(address),
                    (None, Some(_)) => host.ends_with(&name.to_ascii_lowercase()),
                    (None, None) => host == name.to_ascii_lowercase(),
                };
                fits && wanted == Some(port)
            }),
        }
    }
}

/// A connection to where an agent wants, if it may; `None` where it may not.
pub(super) async fn connect(
    outside: &AllowedHosts,
    host: &str,
    port: u16,
) -> std::io::Result<Option<TcpStream>> {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    if !outside.names(&host, port) {
        return Ok(None);
    }
    // An address that the operator lists is meant, wherever it is; a name may lead to what is public only.
    let listed = host.parse::<IpAddr>().is_ok() && matches!(outside, AllowedHosts::Hosts(_));
    let found: Vec<SocketAddr> = lookup_host((host.as_str(), port)).await?.collect();
    let good: Vec<SocketAddr> =
        found.into_iter().filter(|address| listed || is_public(address.ip())).collect();
    if good.is_empty() {
        return Ok(None);
    }
    // To what was looked at, not to what the name says a moment later.
    TcpStream::connect(&good[..]).await.map(Some)
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public_v4(v4),
            None => is_public_v6(v6),
        },
    }
}

const fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && b >= 64 && b < 128)
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19)))
}

const fn is_public_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    // Global unicast, without what carries an older address in it.
    first & 0xe000 == 0x2000
        && first != 0x2002
        && !(first == 0x2001 && address.segments()[1] < 0x200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_reached() {
        let list = ["api.example.com", ".wide.example", "127.0.0.1:99", "[0::1]:98", "2001:db8::5"];
        let hosts = AllowedHosts::Hosts(list.map(str::to_owned).to_vec());
        assert!(hosts.names("api.example.com", 443) && hosts.names("a.wide.example", 443));
        assert!(hosts.names("127.0.0.1", 99) && hosts.names("::1", 98));
        assert!(hosts.names("2001:db8::5", 443) && !hosts.names("2001:db8:", 5));
        for (host, port) in [
            ("api.example.com", 80),
            ("api.example.com.evil.com", 443),
            ("evil-api.example.com", 443),
            ("wide.example", 443),
            ("evilwide.example", 443),
            ("127.0.0.1", 443),
        ] {
            assert!(!hosts.names(host, port), "{host}:{port}");
        }
        assert!(!AllowedHosts::Nothing.names("api.example.com", 443));
        assert!(
            AllowedHosts::Public.names("anything.com", 443)
                && !AllowedHosts::Public.names("x.com", 22)
        );
    }

    #[test]
    fn this_machine_and_its_neighbours_are_not_public() {
        for text in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.9.9",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "ff02::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_home_is_refused() {
        let nowhere = connect(&AllowedHosts::Public, "localhost", 443).await.unwrap();
        assert!(nowhere.is_none());
        let listed = AllowedHosts::Hosts(vec!["localhost:1".to_owned()]);
        assert!(connect(&listed, "localhost", 1).await.unwrap().is_none());
    }
}
