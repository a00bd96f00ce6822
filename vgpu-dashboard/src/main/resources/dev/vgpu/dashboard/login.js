// The printed link has the token after its "#", which browsers do not send to a server.
const token = location.hash.slice(1);
if (token) {
  history.replaceState(null, '', '/login');
  document.getElementById('token').value = token;
  document.querySelector('form').submit();
}
