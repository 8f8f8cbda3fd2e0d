//! The hosts of a configuration one by one.

use std::net::IpAddr;

use tokio_postgres::{
    Config,
    config::{Host, LoadBalanceHosts},
};

/// Whether there is a host, and an address and a port for each. The library checks that only together with the login.
pub(super) fn check_hosts(config: &Config) -> Result<(), &'static str> {
    let (names, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
    let (hosts, ports) = (names.max(addresses), config.get_ports().len());
    match hosts {
        0 => Err("there is no host"),
        _ if names.min(addresses) > 0 && names != addresses => Err("there are not as many hostaddr as host"),
        _ if ports > 1 && ports != hosts => Err("there are neither as many ports as hosts, nor one"),
        _ => Ok(()),
    }
}

/// The same configuration for each of its hosts alone, in their order. If it asks for a random order, `chance` says with which one to
/// begin.
///
/// The library tries the next host when one has failed. A host that takes a connection and then is silent fails only by a time
/// limit from outside, which ends the attempts with all hosts. So each is tried by itself.
pub(super) fn each_host(config: &Config, chance: u128) -> Vec<Config> {
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
    if hosts < 2 {
        return vec![config.clone()];
    }
    let first = first_of(config, hosts, chance);
    (0..hosts).map(|index| of_host(config, (first + index) % hosts)).collect()
}

/// The name of the only host, if the configuration has no address for it.
pub(super) fn name_to_look_up(host: &Config) -> Option<&str> {
    match host.get_hosts().first() {
        Some(Host::Tcp(name)) if host.get_hostaddrs().is_empty() => Some(name),
        _ => None,
    }
}

/// The configuration of one host with each of its addresses, in their order, or beginning with a random one. The name of the host
/// stays, because its certificate is for that.
pub(super) fn each_address(host: &Config, addresses: &[IpAddr], chance: u128) -> Vec<Config> {
    let (before, behind) = addresses.split_at(first_of(host, addresses.len(), chance));
    let with = |address: &IpAddr| host.clone().hostaddr(*address).clone();
    behind.iter().chain(before).map(with).collect()
}

/// With which of so many hosts or addresses to begin.
fn first_of(config: &Config, count: usize, chance: u128) -> usize {
    let is_random = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
    if is_random { usize::try_from(chance % count.max(1) as u128).unwrap_or_default() } else { 0 }
}

fn of_host(config: &Config, index: usize) -> Config {
    let mut alone = without_hosts(config);
    match config.get_hosts().get(index) {
        Some(Host::Tcp(name)) => _ = alone.host(name),
        #[cfg(unix)]
        Some(Host::Unix(path)) => _ = alone.host_path(path),
        None => {}
    }
    config.get_hostaddrs().get(index).into_iter().for_each(|address| _ = alone.hostaddr(*address));
    let port = config.get_ports().get(index).or_else(|| config.get_ports().first());
    port.into_iter().for_each(|port| _ = alone.port(*port));
    alone
}

/// Everything but hosts and ports.
fn without_hosts(config: &Config) -> Config {
    let mut copy = Config::new();
    config.get_user().into_iter().for_each(|user| _ = copy.user(user));
    config.get_password().into_iter().for_each(|password| _ = copy.password(password));
    config.get_dbname().into_iter().for_each(|name| _ = copy.dbname(name));
    config.get_options().into_iter().for_each(|options| _ = copy.options(options));
    config.get_application_name().into_iter().for_each(|name| _ = copy.application_name(name));
    config.get_connect_timeout().into_iter().for_each(|time| _ = copy.connect_timeout(*time));
    config.get_tcp_user_timeout().into_iter().for_each(|time| _ = copy.tcp_user_timeout(*time));
    config.get_keepalives_interval().into_iter().for_each(|time| _ = copy.keepalives_interval(time));
    config.get_keepalives_retries().into_iter().for_each(|count| _ = copy.keepalives_retries(count));
    copy.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "user=u password=p dbname=d options=o application_name=a sslmode=require \
        sslnegotiation=direct connect_timeout=3 tcp_user_timeout=4 keepalives=0 keepalives_idle=5 \
        keepalives_interval=6 keepalives_retries=7 target_session_attrs=read-write channel_binding=require \
        load_balance_hosts=random";

    fn parsed(hosts: &str) -> Config {
        format!("{hosts} {REST}").parse().unwrap()
    }

    #[test]
    fn hosts_without_their_addresses_or_ports_are_refused() {
        let check = |hosts: &str| check_hosts(&parsed(hosts));
        for good in
            ["host=one", "hostaddr=127.0.0.1", "host=a,b hostaddr=::1,::2 port=1,2", "host=a,b port=1"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "port=1", "host=a,b hostaddr=::1", "host=a port=1,2", "host=a,b,c port=1,2"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_address_of_a_host_is_tried_by_itself_and_keeps_the_name() {
        let host = parsed("host=db port=3");
        assert_eq!(name_to_look_up(&host), Some("db"));
        let addresses: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "::1".parse().unwrap()];
        let [first, second] =
            ["192.0.2.1", "::1"].map(|address| parsed(&format!("host=db port=3 hostaddr={address}")));
        assert_eq!(each_address(&host, &addresses, 4), [first.clone(), second.clone()]);
        assert_eq!(each_address(&host, &addresses, 5), [second, first]);
        let mut in_order = host.clone();
        in_order.load_balance_hosts(LoadBalanceHosts::Disable);
        assert_eq!(each_address(&in_order, &addresses, 5)[0].get_hostaddrs(), [addresses[0]]);
        assert_eq!(each_address(&host, &[], 5), []);
        for known in ["host=/socket", "hostaddr=::1", "host=db hostaddr=::1"] {
            assert_eq!(name_to_look_up(&parsed(known)), None, "{known}");
        }
    }

    #[test]
    fn each_host_has_its_port_and_everything_else() {
        let two = parsed("host=one,/two hostaddr=127.0.0.1,127.0.0.2 port=1,2");
        let one = parsed("host=one hostaddr=127.0.0.1 port=1");
        let other = parsed("host=/two hostaddr=127.0.0.2 port=2");
        assert_eq!(each_host(&two, 4), [one.clone(), other.clone()]);
        assert_eq!(each_host(&two, 5), [other, one.clone()], "they are asked for at random");
        assert_eq!(of_host(&one, 0), one, "a part of the configuration is left out");
        assert_eq!(each_host(&one, 5), [one]);
        let mut in_order = two;
        in_order.load_balance_hosts(LoadBalanceHosts::Disable);
        assert_eq!(each_host(&in_order, 5)[1].get_ports(), [2]);
        let one_port = parsed("host=one,two port=3");
        assert_eq!(each_host(&one_port, 0), [parsed("host=one port=3"), parsed("host=two port=3")]);
    }
}
