/** Settings of pgbouncer.ini without a counterpart in Headgate, and why. */

export const leftOutOptions: Readonly<Record<string, string>> = {
  auth_ldap_options: 'LDAP does not exist',
  auth_pam_confdir: 'PAM does not exist',
  pkt_buf: 'buffers have one size; large messages are passed on in pieces',
  sbuf_loopcnt: 'every connection gets its turn without it',
  tcp_defer_accept: 'Node can not set it',
  dns_max_ttl:
    'a name is looked up for each new connection, by the system; connections to the old address stay until their life is over, or RECONNECT',
  dns_nxdomain_ttl: 'see dns_max_ttl',
  dns_zone_check_period: 'see dns_max_ttl',
  resolv_conf: 'names are looked up by the system',
  conffile: 'a reload reads the same file again',
  service_name: 'it is for Windows services',
  job_name: 'see service_name',
};
