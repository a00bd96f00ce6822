// The printed link has the token behind its "#", which no request carries.
const token = location.hash.slice(1);
if (token) {
  history.replaceState(null, '', '/login');
  document.getElementById('token').value = token;
  document.querySelector('form').submit();
}
