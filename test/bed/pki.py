"""A certificate authority of one bed, made with the openssl program (Python's library cannot sign)."""
import ipaddress
import os
import subprocess
from pathlib import Path

DAYS = "30"


class Authority:
    """Signs server and client certificates; keys are P-256 and readable by the owner only."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ca_file = self.directory / "ca.crt"
        self._ca_key = self.directory / "ca.key"
        if not self.ca_file.exists():
            self._request("ca", "/CN=kwatt test bed", [
                "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"])

    def issue_client(self, name, user, groups=()):
        """(certificate file, key file) that the API server takes for `user` in `groups`."""
        subject = "".join(f"/O={escaped(group)}" for group in groups) + f"/CN={escaped(user)}"
        return self._signed(name, subject, ["extendedKeyUsage=clientAuth"])

    def issue_server(self, name, sans):
        """(certificate file, key file) for a server reached under these names and addresses."""
        if not sans:
            raise ValueError(f"server certificate {name} needs at least one name or address")
        alternatives = ",".join(alternative_name(san) for san in sans)
        return self._signed(name, f"/CN={escaped(name)}",
                            ["extendedKeyUsage=serverAuth", f"subjectAltName={alternatives}"])

    def service_account_key(self):
        """(private key file, public key file) for signing service account tokens."""
        private, public = self.directory / "service-account.key", self.directory / "service-account.pub"
        if not public.exists():
            openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(private))
            openssl("pkey", "-in", str(private), "-pubout", "-out", str(public))
        return private, public

    def _signed(self, name, subject, extensions):
        return self._request(name, subject, [
            "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", *extensions,
        ], ["-CA", str(self.ca_file), "-CAkey", str(self._ca_key)])

    def _request(self, name, subject, extensions, signer=()):
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        added = [part for extension in extensions for part in ("-addext", extension)]
        # An own empty configuration: the system's would add its default extensions a second time.
        config = self.directory / "openssl.cnf"
        config.write_text("[req]\ndistinguished_name=dn\n[dn]\n")
        openssl("req", "-x509", "-config", str(config), "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-noenc", "-days", DAYS, "-subj", subject, *added, *signer,
                "-keyout", str(key), "-out", str(certificate))
        os.chmod(key, 0o600)
        return certificate, key


def escaped(text):
    """A value inside openssl's /KEY=value subject syntax."""
    return text.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")


def alternative_name(san):
    try:
        return f"IP:{ipaddress.ip_address(san)}"
    except ValueError:
        return f"DNS:{san}"


def openssl(*arguments):
    answer = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60,
                            stdin=subprocess.DEVNULL)
    if answer.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]} failed: {answer.stderr.strip()}")
